/**
 * `node lab/simulation/bundle.mjs <folder> [<bug>…]`: joins the simulation and the sources of the product to one file,
 * with the ports of the simulation in place of some modules, and with the given seeded bugs (bugs.mjs).
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, defaultServerConditions } from 'vite';
import { withPatches } from './bugs.mjs';

const root = resolve(import.meta.dirname, '../..');
const here = (/** @type {string} */ file) => join(import.meta.dirname, file);
const product = (/** @type {string} */ file) => join(root, file);

/** Modules of the product, and their replacements. */
const REPLACED = new Map([
  [product('packages/db/src/client/pool.ts'), here('ports/pool.ts')],
  [product('packages/db/src/generated/client.ts'), here('ports/prisma-client.ts')],
]);

/**
 * Code that is appended to modules whose state must begin anew with each run.
 * @type {[RegExp, string][]}
 */
const RESET = [
  [/uuid\/dist\/esm-node\/v7\.js$/, 'simulationReset(() => { _seqLow = null; _seqHigh = null; _msecs = 0; });'],
  [/uuid\/dist\/esm-node\/rng\.js$/, 'simulationReset(() => { poolPtr = rnds8Pool.length; });'],
];
const RESETS = 'const simulationReset = (reset) => (globalThis.simulationResets ??= []).push(reset);';

/**
 * @param {string} outDir
 * @param {readonly { file: string, find: string, replace: string }[]} [patches] replacements of text in sources
 */
export async function bundle(outDir, patches = []) {
  const applied = new Set();
  await build({
    configFile: false,
    logLevel: 'error',
    root,
    publicDir: false,
    resolve: { alias: { got: here('ports/network.ts') } },
    plugins: [
      {
        name: 'simulation-ports',
        enforce: 'pre',
        async resolveId(source, importer, options) {
          if (importer === undefined) return null;
          const resolved = await this.resolve(source, importer, { ...options, skipSelf: true });
          const replacement = resolved === null ? undefined : REPLACED.get(resolved.id);
          return replacement === undefined || importer === replacement ? resolved : replacement;
        },
        load(id) {
          const patch = patches.find(({ file }) => product(file) === id);
          if (patch === undefined) return null;
          applied.add(patch.file);
          return withPatches(patch.file, readFileSync(id, 'utf8'), patches);
        },
        transform(code, id) {
          const reset = RESET.find(([pattern]) => pattern.test(id));
          return reset === undefined ? null : `${code}\n${RESETS}\n${reset[1]}`;
        },
      },
    ],
    build: {
      ssr: true,
      outDir,
      emptyOutDir: false,
      target: 'node20',
      minify: false,
      reportCompressedSize: false,
      rolldownOptions: {
        input: { simulation: here('main.ts') },
        output: { format: 'es', entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs', keepNames: true },
      },
    },
    ssr: {
      target: 'node',
      noExternal: true,
      external: ['@callplane/migrations'],
      resolve: { conditions: ['source', ...defaultServerConditions] },
    },
  });
  const missing = patches.find(({ file }) => !applied.has(file));
  if (missing !== undefined) throw new Error(`${missing.file} is no part of the simulation`);
}

if (process.argv[1] === import.meta.filename) await bundle(resolve(process.argv[2] ?? 'dist'));
