/**
 * Joins the sources of each app and its dependencies to one file and a few that the apps share, and builds the pages
 * with `--pages`. Needs no compiled package, only the generated client of the database. A process of its own: the bundler
 * needs 700 MiB, which its caller should not keep.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build, defaultServerConditions } from 'vite';
import { BUNDLED_APPS, bundleOf, PAGES, SHARED_CHUNKS } from './bundles.mjs';
import { root } from './files.mjs';

for (const folder of [SHARED_CHUNKS, ...BUNDLED_APPS.map((name) => dirname(bundleOf(name)))]) {
  rmSync(folder, { recursive: true, force: true });
}
const sources = BUNDLED_APPS.map((name) => ({ name, main: join(root, 'apps', name, 'src', 'main.ts') }));
/** @param {string} name */
const codeOf = (name) => join(dirname(bundleOf(name)), 'app');

/**
 * V8 keeps the compiled code of CommonJS only, which has no `await` at the top level. Wraps the statements of each entry
 * point into a function; they follow its imports.
 */
const wrapEntryPoints = {
  name: 'wrap-entry-points',
  /** @type {'pre'} */
  enforce: 'pre',
  /**
   * @param {string} code
   * @param {string} id
   */
  transform(code, id) {
    if (!sources.some(({ main }) => main === id)) return undefined;
    const lines = code.replace(/^#!.*\n/, '').split('\n');
    const imports = lines.findLastIndex((line) => /^(import|} from) .*;$/.test(line)) + 1;
    const [before, after] = [lines.slice(0, imports), lines.slice(imports)];
    // Throws the failure of a start, as a module would, so that the app reports it and ends.
    const end = '})().catch((error) => setImmediate(() => { throw error; }));';
    return [...before, '(async () => {', ...after, end].join('\n');
  },
};

// One build for all apps takes 3.3 s of processor time, one for each took 8 s (measured): they have most of their
// dependencies in common.
await build({
  configFile: false,
  // Vite warns that the output is not in a folder of its own. It is in the folders of the apps, because a bundle finds
  // the files of @scalar/api-reference and packages/migrations by its own place.
  logLevel: 'error',
  root,
  publicDir: false,
  plugins: [wrapEntryPoints],
  build: {
    ssr: true,
    outDir: root,
    emptyOutDir: false,
    target: 'node20',
    minify: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: Object.fromEntries(sources.map(({ name, main }) => [relative(root, codeOf(name)), main])),
      output: {
        format: 'cjs',
        // A script outside of Node's own loader cannot import.
        dynamicImportInCjs: false,
        entryFileNames: '[name].cjs',
        chunkFileNames: `${relative(root, SHARED_CHUNKS)}/[name]-[hash].cjs`,
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
const loader = join(root, 'scripts', 'lib', 'code-cache.mjs');
// An app of an earlier build may write its cache after this build.
const cache = join(SHARED_CHUNKS, 'code-cache', Date.now().toString(36));
for (const name of BUNDLED_APPS) {
  // Relative paths, because a clone may move.
  const from = dirname(bundleOf(name));
  const lines = [
    `import { runBundle } from '${relative(from, loader)}';`,
    `runBundle(import.meta.dirname, 'app.cjs', '${relative(from, join(cache, name))}');`,
  ];
  writeFileSync(bundleOf(name), `${lines.join('\n')}\n`);
}
if (process.argv.includes('--pages')) {
  for (const name of PAGES) await build({ root: join(root, 'apps', name), logLevel: 'error' });
}
