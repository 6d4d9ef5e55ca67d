/**
 * The modules of scripts/lib that run before the first build and therefore are plain JavaScript. This file alone imports
 * them; src and dist are at the same depth, so the path holds for both.
 */
export { toolsEnvironment } from '../../../scripts/lib/dependencies.mjs';
export { explain, Failure } from '../../../scripts/lib/failure.mjs';
export { readJson, root } from '../../../scripts/lib/files.mjs';
export { findJanus, installJanus } from '../../../scripts/lib/janus.mjs';
export { takeLock } from '../../../scripts/lib/lock.mjs';
export { progress, type Step } from '../../../scripts/lib/progress.mjs';
export { run } from '../../../scripts/lib/run.mjs';
export { ensureStartPrograms } from '../../../scripts/lib/start-programs.mjs';
export { ensurePrograms, installCommand, missingPrograms } from '../../../scripts/lib/system-packages.mjs';
