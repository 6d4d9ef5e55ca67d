import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, takeLock } from '../bootstrap.js';

/**
 * Makes DATA_DIR and takes it for this start.
 * @returns releases it
 * @throws Failure if another start runs on it.
 */
export function takeDataFolder(dataDir: string): () => void {
  try {
    mkdirSync(dataDir, { recursive: true });
  } catch (error) {
    throw new Failure(`DATA_DIR cannot be created: ${(error as Error).message}`);
  }
  const lock = takeLock(join(dataDir, 'start.lock'));
  if ('owner' in lock) {
    throw new Failure(
      `Another start (process ${lock.owner}) uses ${dataDir}. Stop it, or choose another DATA_DIR for this start: ` +
        'DATA_DIR=.data-2 PORT=8081 npm start',
    );
  }
  return lock.release;
}
