/**
 * Joins the files of each package below to one. Jest resolves, reads, compiles and links every file of a package again
 * for each test file, because each has modules of its own: typebox has 709 files and BullMQ 354, which together took
 * 0.3 s of processor time for each test file that imports them (measured). jest.config.js maps their names to the
 * results.
 */
import { join } from 'node:path';
import { build } from 'vite';

const JOINED = ['typebox', 'bullmq'];
const packages = join(import.meta.dirname, '../..');
/** A file that does not exist, in a package that may import them. @param {string} name */
const entryOf = (name) => join(packages, 'queue', `all-of-${name}.js`);

await build({
  configFile: false,
  logLevel: 'error',
  root: packages,
  publicDir: false,
  plugins: [
    {
      name: 'entries',
      /** @param {string} id */
      resolveId: (id) => (JOINED.some((name) => id === entryOf(name)) ? id : undefined),
      /** @param {string} id */
      load: (id) => {
        const joined = JOINED.find((name) => id === entryOf(name));
        return joined === undefined ? undefined : `export * from '${joined}';`;
      },
    },
  ],
  build: {
    ssr: true,
    outDir: join(import.meta.dirname, '../dist/modules'),
    target: 'node20',
    minify: false,
    rolldownOptions: {
      input: Object.fromEntries(JOINED.map((name) => [name, entryOf(name)])),
      output: { entryFileNames: '[name].mjs', keepNames: true },
    },
  },
  ssr: { target: 'node', noExternal: true },
});
