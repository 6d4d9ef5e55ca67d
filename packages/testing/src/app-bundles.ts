import { join } from 'node:path';
import { repositoryRoot } from './repository-root.js';

/**
 * The compiled entry point of an app; its bundle if CALLPLANE_TEST_BUNDLES is set. A run of all tests starts apps more
 * than 200 times, and makes the bundles before (scripts/lib/make-bundles.mjs), which takes 5 s. Tests that are about the
 * files themselves, such as the image's, run `dist/main.js`.
 */
export function appMain(name: string): string {
  const folder = process.env['CALLPLANE_TEST_BUNDLES'] === 'true' ? ['dist', 'bundle'] : ['dist'];
  return join(repositoryRoot, 'apps', name, ...folder, 'main.js');
}
