import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What a page loads to begin a call. What only a running call needs is loaded later, as chunks of its own. */
const GZIP_BYTES_MAX = 15_000;
/** The same with all chunks. */
const ALL_GZIP_BYTES_MAX = 34_000;

/** In a process of its own: the bundler is native, and does not run inside Jest's module system. */
const MEASURE = `
  import { gzipSync } from 'node:zlib';
  import { build } from 'vite';
  const { output } = await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      target: 'es2022',
      modulePreload: false,
      rolldownOptions: { input: 'src/index.ts', preserveEntrySignatures: 'strict' },
    },
  });
  const bytesOf = ({ code }) => gzipSync(code, { level: 9 }).length;
  const [entry, ...later] = output;
  console.log(bytesOf(entry), ...later.map(bytesOf));
`;

test('the SDK, bundled and minified, has less than 34 KB with gzip, and its core less than 15 KB', async () => {
  const cwd = new URL('..', import.meta.url).pathname;
  const { stdout } = await promisify(execFile)('node', ['--input-type=module', '--eval', MEASURE], { cwd });
  const [core = 0, ...later] = stdout.trim().split(' ').map(Number);
  console.log('measured: gzip bytes of the SDK', { core, later });
  expect(core).toBeGreaterThan(5_000);
  expect(core).toBeLessThan(GZIP_BYTES_MAX);
  expect(later.reduce((sum, bytes) => sum + bytes, core)).toBeLessThan(ALL_GZIP_BYTES_MAX);
});
