import { asApiError } from './api-error.js';

/**
 * @returns the last answer while a later read fails for some time; none once the API refuses the read, because the
 * thing was removed or the session may not read it any more
 */
export function shownAnswer<Data>({ data, error }: { data: Data | undefined; error: unknown }): Data | undefined {
  return error === null || asApiError(error).isTemporary ? data : undefined;
}
