import { resolve } from 'node:path';

/** The root of the repository, three levels above this file's folder, which is src/ or dist/. */
export const repositoryRoot = resolve(import.meta.dirname, '..', '..', '..');
