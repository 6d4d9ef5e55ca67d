import { Call } from './call.js';
import { CallplaneError } from './errors.js';
import { settingsOf, type ConnectOptions } from './options.js';
import { platformOf } from './platform.js';

/**
 * Joins a call. Resolves once the gateway has let this participant in; rejects with a `CallplaneError` whose code is the
 * gateway's reason (`invalid_token`, `capacity`, …) or `unreachable`.
 */
export async function connect(options: ConnectOptions): Promise<Call> {
  const call = new Call(platformOf(options.platform), settingsOf(options));
  try {
    await call.join();
  } catch (error) {
    if (error instanceof CallplaneError) throw error;
    throw new CallplaneError('invalid_argument', `No connection can be made to ${options.url}.`, { cause: error });
  }
  return call;
}
