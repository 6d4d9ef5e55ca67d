/**
 * Joins the sources of each app and its dependencies to one file and a few that the apps share, and builds the demo page
 * with `--demo`. Needs no compiled package, only the generated client of the database. A process of its own: the bundler
 * needs 700 MiB, which its caller should not keep.
 */
import { rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build, defaultServerConditions } from 'vite';
import { BUNDLED_APPS, bundleOf, SHARED_CHUNKS } from './bundles.mjs';
import { root } from './files.mjs';

for (const folder of [SHARED_CHUNKS, ...BUNDLED_APPS.map((name) => dirname(bundleOf(name)))]) {
  rmSync(folder, { recursive: true, force: true });
}
/** @param {string} path */
const withoutExtension = (path) => relative(root, path).replace(/\.js$/, '');

// One build for all apps takes 3.3 s of processor time, one for each took 8 s (measured): they have most of their
// dependencies in common.
await build({
  configFile: false,
  // Vite warns that the output is not in a folder of its own. It is in the folders of the apps, because a bundle finds
  // the files of @scalar/api-reference and packages/migrations by its own place.
  logLevel: 'error',
  root,
  publicDir: false,
  build: {
    ssr: true,
    outDir: root,
    emptyOutDir: false,
    target: 'node20',
    minify: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: Object.fromEntries(
        BUNDLED_APPS.map((name) => [withoutExtension(bundleOf(name)), join(root, 'apps', name, 'src', 'main.ts')]),
      ),
      output: {
        entryFileNames: '[name].js',
        chunkFileNames: `${relative(root, SHARED_CHUNKS)}/[name]-[hash].js`,
        // Logs and metrics contain names of classes.
        keepNames: true,
      },
    },
  },
  ssr: {
    target: 'node',
    noExternal: true,
    // packages/migrations reads files beside its own. Only `rtc db` imports it.
    external: ['@callplane/migrations'],
    // The packages of this repository come from their sources, so that no compiler runs before.
    resolve: { conditions: ['source', ...defaultServerConditions] },
  },
});
if (process.argv.includes('--demo')) await build({ root: join(root, 'apps', 'demo'), logLevel: 'error' });
