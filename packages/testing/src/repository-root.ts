import { resolve } from 'node:path';

/** The repository's top; this file is two levels below its package, in src/ as in dist/. */
export const repositoryRoot = resolve(import.meta.dirname, '..', '..', '..');
