import { join } from 'node:path';
import { repositoryRoot } from './repository-root.js';

const APPS = ['api', 'cleanup-worker', 'cli', 'signaling', 'webhook-worker'];

/** The compiled entry point of an app; its bundle if CALLPLANE_TEST_BUNDLES is set. */
export function appMain(name: string): string {
  const folder = process.env['CALLPLANE_TEST_BUNDLES'] === 'true' ? ['dist', 'bundle'] : ['dist'];
  return join(repositoryRoot, 'apps', name, ...folder, 'main.js');
}

/**
 * Joins each built app and its dependencies to one file, which appMain() returns. An app starts from about 1,000
 * files, which takes 1.1 s of processor time, and from one file 0.4 s (measured with Node 20). A run of all tests starts
 * apps more than 200 times; making the bundles takes 5 s. Tests that are about the files themselves, such as the image's,
 * run `dist/main.js`.
 */
export async function bundleApps(): Promise<void> {
  // Below the app, so that what it resolves at run time (the files of @scalar/api-reference) resolves as from dist.
  for (const name of APPS) await bundleApp(name, join('dist', 'bundle'));
}

/**
 * Joins a built app and its dependencies to one file.
 * @param folder for `main.js`, relative to the app's folder.
 */
export async function bundleApp(name: string, folder: string): Promise<void> {
  const { build } = await import('vite');
  const app = join(repositoryRoot, 'apps', name);
  await build({
    configFile: false,
    logLevel: 'warn',
    root: app,
    publicDir: false,
    build: {
      ssr: join(app, 'dist', 'main.js'),
      outDir: join(app, folder),
      emptyOutDir: true,
      target: 'node20',
      minify: false,
      // Logs and metrics contain names of classes.
      rolldownOptions: { output: { keepNames: true } },
    },
    // packages/migrations reads files beside its own. Only `rtc db` imports it.
    ssr: { target: 'node', noExternal: true, external: ['@callplane/migrations'] },
  });
}
