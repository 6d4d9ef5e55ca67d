import { Call } from './call.js';
import { abortedError, assertNotAborted, CallplaneError } from './errors.js';
import { settingsOf, type ConnectOptions } from './options.js';
import { platformOf } from './platform.js';

/**
 * Joins a call. Resolves once the gateway has admitted the participant.
 * @throws CallplaneError whose code is the gateway's reason (`invalid_token`, `capacity`, …), `unreachable` or `aborted`.
 */
export async function connect(options: ConnectOptions): Promise<Call> {
  const { signal } = options;
  const platform = platformOf(options.platform);
  const settings = settingsOf(options, platform.now());
  assertNotAborted(signal);
  const call = new Call(platform, settings);
  const giveUp = () => void call.leave();
  signal?.addEventListener('abort', giveUp);
  try {
    await call.join();
    assertNotAborted(signal);
  } catch (error) {
    if (signal?.aborted === true) throw abortedError(signal);
    if (error instanceof CallplaneError) throw error;
    throw new CallplaneError('invalid_argument', `Cannot connect to ${options.url}.`, { cause: error });
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
  return call;
}
