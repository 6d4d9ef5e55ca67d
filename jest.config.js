/**
 * One run for the whole tree. jest/global-setup.mjs starts PostgreSQL with the migrated template once. Run it through
 * `npm test`, which builds first: tests that spawn apps run the code in dist/, or bundles of it if all files run.
 */
const full = process.env.CALLPLANE_TEST_FULL === 'true';
// Container tests need a Docker engine and run separately: `npm run test:containers`.
const containers = process.env.CALLPLANE_TEST_CONTAINERS === 'true';

// The laboratory has tests of its own: `npm run lab:test`.
const lab = process.env.CALLPLANE_TEST_LAB === 'true';

export default {
  roots: lab ? ['<rootDir>/lab'] : ['<rootDir>/apps', '<rootDir>/packages', '<rootDir>/tests'],
  testMatch: containers ? ['<rootDir>/tests/containers/*.test.ts'] : ['**/*.test.ts'],
  // Tests that are slow by nature are named *.full.test.ts and run only with `npm run test:full`.
  testPathIgnorePatterns: [
    ...['/node_modules/', '/dist/'],
    ...(full ? [] : ['\\.full\\.test\\.ts$']),
    ...(containers ? [] : ['<rootDir>/tests/containers/']),
  ],
  modulePathIgnorePatterns: ['/dist/package\\.json$'],
  globalSetup: '<rootDir>/packages/testing/jest/global-setup.mjs',
  globalTeardown: '<rootDir>/packages/testing/jest/global-teardown.mjs',
  reporters: [
    'default',
    '<rootDir>/packages/testing/dist/usage-reporter.js',
    '<rootDir>/packages/dev/dist/test/count-reporter.js',
  ],
  testEnvironment: '<rootDir>/packages/testing/jest/environment.mjs',
  // Tests import this repository's packages from their sources, so that no stale build can pass.
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    // packages/testing/jest/join-modules.mjs
    '^(typebox|bullmq)$': '<rootDir>/packages/testing/dist/modules/$1.mjs',
    '^fast-check$': '<rootDir>/packages/testing/jest/fast-check.mjs',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
  // Files wait for servers and deadlines, too, so two workers leave two cores idle at times. With four, the
  // load is 13 to 19: files take longer, and deadlines pass that have nothing to do with the test.
  maxWorkers: 3,
  // How long a worker may take to end before Jest kills it and reports a leak: ioredis gives the connection to a frozen
  // Redis 2 s to end, and a busy machine ends a large process slowly.
  workerGracefulExitTimeout: 30_000,
  testSequencer: '<rootDir>/packages/dev/dist/test/sequencer.js',
  // Above the deadlines in the tests (60 s in eventually()), whose errors say what did not happen.
  testTimeout: 300_000,
};
