import { expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** What a page loads to begin a call. What only a running call needs is loaded later, as chunks of its own. */
const GZIP_BYTES_MAX = 15_000;
/** The same with all chunks that do not count apart. */
const ALL_GZIP_BYTES_MAX = 34_000;
/** The chunk of requests between participants, which only calls with such requests load. It counts apart, too. */
const ASKS_GZIP_BYTES_MAX = 2_000;
/** The chunk of streams, which only calls with streams load. It counts apart. */
const STREAMS_GZIP_BYTES_MAX = 5_500;
/** The worker and the chunk that opens it, which only encrypted calls load. They count apart. */
const ENCRYPTION_GZIP_BYTES_MAX = 6_000;
/** The chunk of `testConnection()`, which no call loads. It counts apart. */
const TEST_GZIP_BYTES_MAX = 4_000;
/** The chunk of processors of local tracks. It counts apart. */
const PROCESSING_GZIP_BYTES_MAX = 1_500;

/** In a process of its own: the bundler is native, and does not run inside Jest's module system. */
const MEASURE = `
  import { gzipSync } from 'node:zlib';
  import { build } from 'vite';
  const { output } = await build({
    configFile: false,
    logLevel: 'silent',
    worker: { format: 'es' },
    build: {
      write: false,
      target: 'es2022',
      modulePreload: false,
      rolldownOptions: { input: 'src/index.ts', preserveEntrySignatures: 'strict' },
    },
  });
  const bytesOf = ({ code, source }) => gzipSync(code ?? source, { level: 9 }).length;
  const isEncryption = ({ fileName }) => /encryption(-worker)?-/.test(fileName);
  const isTest = ({ fileName }) => /run-test-/.test(fileName);
  const isProcessing = ({ fileName }) => /processing-/.test(fileName);
  const isAsks = ({ fileName }) => /asks-/.test(fileName);
  const isStreams = ({ fileName }) => /streams-/.test(fileName);
  const sizeOf = (which) => output.filter(which).reduce((sum, one) => sum + bytesOf(one), 0);
  const apart = [isEncryption, isTest, isProcessing, isAsks, isStreams];
  const [entry, ...later] = output.filter((one) => !apart.some((is) => is(one)));
  console.log(...apart.map(sizeOf), bytesOf(entry), ...later.map(bytesOf));
`;

test('the SDK, bundled and minified, has less than 34 KB with gzip, and its core less than 15 KB', async () => {
  const cwd = new URL('..', import.meta.url).pathname;
  const { stdout } = await promisify(execFile)('node', ['--input-type=module', '--eval', MEASURE], { cwd });
  const sizes = stdout.trim().split(' ').map(Number);
  const [encryption = 0, test = 0, processing = 0, asks = 0, streams = 0, core = 0, ...later] = sizes;
  console.log('measured: gzip bytes of the SDK', { core, later, encryption, test, processing, asks, streams });
  expect(encryption).toBeGreaterThan(3_000);
  expect(encryption).toBeLessThan(ENCRYPTION_GZIP_BYTES_MAX);
  expect(test).toBeGreaterThan(1_000);
  expect(test).toBeLessThan(TEST_GZIP_BYTES_MAX);
  expect(processing).toBeGreaterThan(500);
  expect(processing).toBeLessThan(PROCESSING_GZIP_BYTES_MAX);
  expect(asks).toBeGreaterThan(500);
  expect(asks).toBeLessThan(ASKS_GZIP_BYTES_MAX);
  expect(streams).toBeGreaterThan(1_000);
  expect(streams).toBeLessThan(STREAMS_GZIP_BYTES_MAX);
  expect(core).toBeGreaterThan(5_000);
  expect(core).toBeLessThan(GZIP_BYTES_MAX);
  expect(later.reduce((sum, bytes) => sum + bytes, core)).toBeLessThan(ALL_GZIP_BYTES_MAX);
});
