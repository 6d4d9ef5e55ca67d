/** The modules of scripts/lib that the lab uses. src and dist are at the same depth, so the path holds for both. */
export { explain, Failure } from '../../scripts/lib/failure.mjs';
export { root } from '../../scripts/lib/files.mjs';
export { progress } from '../../scripts/lib/progress.mjs';
export { ensurePrograms, installCommand } from '../../scripts/lib/system-packages.mjs';
