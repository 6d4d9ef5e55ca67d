/**
 * Joins the files of each package below to one. Jest resolves, reads, compiles and links every file of a package again
 * for each test file, because each has modules of its own: typebox has 709 files and BullMQ 354, which together took
 * 0.3 s of processor time for each test file that imports them (measured). jest.config.js maps their names to the
 * results.
 */
import { join } from 'node:path';
import { build } from 'vite';

/** Each with a package that may import it. */
const IMPORTERS = { typebox: 'runtime', bullmq: 'queue' };
const packages = join(import.meta.dirname, '../..');
/** Files that do not exist. */
const ENTRIES = Object.fromEntries(
  Object.entries(IMPORTERS).map(([name, importer]) => [name, join(packages, importer, `all-of-${name}.js`)]),
);

await build({
  configFile: false,
  logLevel: 'error',
  root: packages,
  publicDir: false,
  plugins: [
    {
      name: 'entries',
      /** @param {string} id */
      resolveId: (id) => (Object.values(ENTRIES).includes(id) ? id : undefined),
      /** @param {string} id */
      load: (id) => {
        const joined = Object.entries(ENTRIES).find(([, entry]) => id === entry);
        return joined === undefined ? undefined : `export * from '${joined[0]}';`;
      },
    },
  ],
  build: {
    ssr: true,
    outDir: join(import.meta.dirname, '../dist/modules'),
    target: 'node20',
    minify: false,
    rolldownOptions: {
      input: ENTRIES,
      output: { entryFileNames: '[name].mjs', keepNames: true },
    },
  },
  ssr: { target: 'node', noExternal: true },
});
