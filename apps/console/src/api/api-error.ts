export interface ErrorDetail {
  path: string;
  message: string;
}

/** A request that failed: an answer with an error, or no answer (`NO_ANSWER`). */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status, or 0 without an answer. */
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly details: readonly ErrorDetail[];

  constructor(
    status: number,
    fields: { code: string; message: string; requestId?: string | undefined; details?: readonly ErrorDetail[] },
  ) {
    super(fields.message);
    this.status = status;
    this.code = fields.code;
    this.requestId = fields.requestId;
    this.details = fields.details ?? [];
  }

  /** Whether the same request may succeed later: no answer, too many requests, or a failure of the server. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** @returns the error of an answer, also if a proxy in front of the API wrote it */
export async function readError(response: Response): Promise<ApiError> {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  try {
    const { error } = (await response.json()) as {
      error: { code: string; message: string; requestId: string; details?: ErrorDetail[] };
    };
    return new ApiError(response.status, error);
  } catch {
    const message = `The server answered ${response.status} without an error of the API. A proxy may have answered.`;
    return new ApiError(response.status, { code: 'UNREADABLE', message, requestId });
  }
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, { code: 'CONSOLE', message: error instanceof Error ? error.message : String(error) });
}

/**
 * @returns the last answer while a later read fails for some time; none once the API refuses the read, because the
 * thing was removed or the session may not read it any more
 */
export function shownAnswer<Data>({ data, error }: { data: Data | undefined; error: unknown }): Data | undefined {
  return error === null || asApiError(error).isTemporary ? data : undefined;
}
