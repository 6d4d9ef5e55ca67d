/**
 * One run for the whole tree; PostgreSQL and the migrated template behind it are started once (jest/global-setup.mjs).
 * Run it through `npm test`, which builds first: tests that spawn apps run what is in dist/.
 */
const full = process.env.CALLPLANE_TEST_FULL === 'true';
// They need a Docker engine, and have a run of their own: `npm run test:containers`.
const containers = process.env.CALLPLANE_TEST_CONTAINERS === 'true';

export default {
  roots: ['<rootDir>/apps', '<rootDir>/packages', '<rootDir>/tests', '<rootDir>/scripts'],
  testMatch: containers ? ['<rootDir>/tests/containers/*.test.ts'] : ['**/*.test.ts', '**/*.test.mjs'],
  // What must be slow is called *.full.test.ts and runs with `npm run test:full` only.
  testPathIgnorePatterns: [
    ...['/node_modules/', '/dist/'],
    ...(full ? [] : ['\\.full\\.test\\.(ts|mjs)$']),
    ...(containers ? [] : ['<rootDir>/tests/containers/']),
  ],
  modulePathIgnorePatterns: ['/dist/package\\.json$'],
  globalSetup: '<rootDir>/packages/testing/jest/global-setup.mjs',
  globalTeardown: '<rootDir>/packages/testing/jest/global-teardown.mjs',
  reporters: ['default', '<rootDir>/scripts/test/count-reporter.mjs'],
  testEnvironment: '<rootDir>/packages/testing/jest/environment.mjs',
  // Our own packages are tested from their sources: no stale build can pass.
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2022' }, module: { type: 'es6' }, sourceMaps: 'inline' },
    ],
  },
  // Files mostly wait for servers, not for the processor; more at once only make time-outs likelier on two cores.
  maxWorkers: 2,
  testTimeout: 30_000,
};
