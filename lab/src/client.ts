/** A request beside its method and path. */
export interface Sent {
  body?: object;
  idempotencyKey?: string;
  prefer?: string;
}

export interface Reply {
  /** Null if no answer came. */
  status: number | null;
  /** `timeout`, or the code of the network's error such as `ECONNRESET`; null with a `status`. */
  error: string | null;
  /** Parsed; null without a body, and the beginning of a text that is not JSON. */
  answer: unknown;
  header(name: string): string | null;
}

const GIVE_UP_MS = 30_000;

export class ApiClient {
  /** Of requests with a body. */
  readonly headers: { authorization: string; 'content-type': string };

  constructor(
    readonly baseUrl: string,
    key: string,
  ) {
    this.headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  }

  /** Sends a request once. Never throws. */
  async send(method: string, path: string, { body, idempotencyKey, prefer }: Sent = {}): Promise<Reply> {
    try {
      const response = await fetch(`${this.baseUrl}${path}`, {
        method,
        headers: {
          authorization: this.headers.authorization,
          ...(body === undefined ? {} : { 'content-type': this.headers['content-type'] }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(prefer === undefined ? {} : { prefer }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        signal: AbortSignal.timeout(GIVE_UP_MS),
      });
      const answer = parsed(await response.text());
      return { status: response.status, error: null, answer, header: (name) => response.headers.get(name) };
    } catch (error) {
      const { name, cause } = error as { name: string; cause?: { code?: string; message?: string } };
      const code = name === 'TimeoutError' ? 'timeout' : (cause?.code ?? cause?.message ?? name);
      return { status: null, error: code, answer: null, header: () => null };
    }
  }

  /** @throws Error if the answer is not one of success. */
  async call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const { status, error, answer } = await this.send(method, path, body === undefined ? {} : { body });
    if (status === null || status >= 300)
      throw new Error(`${method} ${path} answered ${error ?? status}: ${JSON.stringify(answer)}`);
    return (answer ?? {}) as Record<string, unknown>;
  }

  async newRoom(settings: object = {}): Promise<string> {
    return String((await this.call('POST', '/v1/rooms', { name: 'bench', ...settings }))['id']);
  }

  async newToken(roomId: string, participantName: string, permissions?: readonly string[]): Promise<string> {
    const body = { participantName, ...(permissions === undefined ? {} : { permissions }) };
    return String((await this.call('POST', `/v1/rooms/${roomId}/tokens`, body))['token']);
  }
}

/** The address of a gateway for participants. */
export const signalingUrlOf = (origin: string): string => `${origin.replace(/^http/, 'ws')}/v1/signaling`;

function parsed(text: string): unknown {
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(0, 1000);
  }
}
