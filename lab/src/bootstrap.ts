import { parseArgs, type ParseArgsConfig } from 'node:util';
import { Failure } from '../../scripts/lib/failure.mjs';

/** The modules of scripts/lib that the lab uses. src and dist are at the same depth, so the path holds for both. */
export { explain } from '../../scripts/lib/failure.mjs';
export { Failure };
export { root } from '../../scripts/lib/files.mjs';
export { progress } from '../../scripts/lib/progress.mjs';
export { ensurePrograms, installCommand } from '../../scripts/lib/system-packages.mjs';

/**
 * `parseArgs` of Node.
 * @throws Failure with one line about a wrong option.
 */
export function parsed<const Config extends ParseArgsConfig>(config: Config) {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new Failure((error as Error).message);
  }
}
