/**
 * `node lab/simulation/build-apps.mjs <bug>`: builds the apps with one seeded bug (bugs.mjs) as
 * `apps/<app>/dist/bug-<bug>/main.mjs`, for `npm run torture -- --bug <bug>`. `<bug>,<bug>` applies several. The sources do
 * not change. An app finds the files of its packages from there.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build, defaultServerConditions } from 'vite';
import { BUGS } from './bugs.mjs';

const APPS = ['api', 'signaling', 'cleanup-worker', 'webhook-worker'];
const root = resolve(import.meta.dirname, '../..');
const names = (process.argv[2] ?? '').split(',');
const folder = `bug-${names.join('_')}`;
const seeded = names.flatMap((name) => {
  const bug = BUGS.find((each) => each.name === name);
  if (bug === undefined) {
    console.error(`there is no seeded bug "${name}". lab/simulation/bugs.mjs names all.`);
    process.exit(2);
  }
  return bug.patches;
});

const applied = new Set();
await build({
  configFile: false,
  logLevel: 'error',
  root,
  publicDir: false,
  plugins: [
    {
      name: 'seeded-bug',
      enforce: 'pre',
      load(id) {
        const patches = seeded.filter(({ file }) => join(root, file) === id);
        if (patches.length === 0) return null;
        let text = readFileSync(id, 'utf8');
        for (const patch of patches) {
          if (text.split(patch.find).length !== 2) throw new Error(`"${patch.find}" is not once in ${patch.file}`);
          text = text.replace(patch.find, () => patch.replace);
          applied.add(patch);
        }
        return text;
      },
    },
  ],
  build: {
    ssr: true,
    outDir: root,
    emptyOutDir: false,
    target: 'node20',
    minify: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: Object.fromEntries(
        APPS.map((app) => [`apps/${app}/dist/${folder}/main`, join(root, 'apps', app, 'src', 'main.ts')]),
      ),
      output: {
        format: 'es',
        entryFileNames: '[name].mjs',
        chunkFileNames: `apps/api/dist/${folder}/[name]-[hash].mjs`,
        keepNames: true,
      },
    },
  },
  ssr: {
    target: 'node',
    noExternal: true,
    external: ['@callplane/migrations'],
    resolve: { conditions: ['source', ...defaultServerConditions] },
  },
});
const missing = seeded.find((patch) => !applied.has(patch));
if (missing !== undefined) throw new Error(`${missing.file} is no part of the apps`);
