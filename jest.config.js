/**
 * One run for the whole tree. jest/global-setup.mjs starts PostgreSQL with the migrated template once. Run it through
 * `npm test`, which builds first: tests that spawn apps run the code in dist/. packages/dev/src/test/main.ts describes
 * the tiers; without one, as in an editor, every file can run.
 */
import { LIBRARIES } from './packages/testing/jest/libraries.mjs';

const tier = process.env.CALLPLANE_TEST_TIER ?? 'some';
const PARTS = ['<rootDir>/apps', '<rootDir>/packages', '<rootDir>/tests'];
const SLOW = '\\.slow\\.test\\.ts$';
const FULL = '\\.full\\.test\\.ts$';
/** Needs the media server of the images. */
const IMAGE = '\\.image\\.test\\.ts$';
const CONTAINERS = '<rootDir>/tests/containers/';
/** Adds network interfaces, at which browsers drop what they load. The laboratory opens no browser. */
const LINE = '<rootDir>/tests/line/';

/** Where each tier looks, which files it leaves out, and which alone it takes if these are not all. */
const TIERS = {
  quick: { roots: ['<rootDir>/apps', '<rootDir>/packages', '<rootDir>/tests/ends'], without: [SLOW, FULL, IMAGE] },
  all: { roots: PARTS, without: [FULL, IMAGE, CONTAINERS] },
  rest: {
    roots: PARTS,
    without: [FULL, IMAGE, CONTAINERS, LINE, '<rootDir>/tests/ends/'],
    only: ['**/*.slow.test.ts', '<rootDir>/tests/**/*.test.ts'],
  },
  full: { roots: PARTS, without: [IMAGE, CONTAINERS] },
  image: {
    roots: ['<rootDir>/apps', '<rootDir>/packages/media'],
    without: [FULL],
    only: [
      '**/apps/api/**/{*.routes,tenancy,examples}.test.ts',
      '**/packages/media/src/janus/*.test.ts',
      '**/apps/signaling/src/media.slow.test.ts',
    ],
  },
  lab: { roots: ['<rootDir>/lab', '<rootDir>/tests/line'], without: [] },
  containers: { roots: ['<rootDir>/tests/containers'], without: [] },
  some: { roots: [...PARTS, '<rootDir>/lab'], without: [IMAGE, CONTAINERS] },
};
const { roots, without, only = ['**/*.test.ts'] } = TIERS[tier];

/** packages/testing/jest/share-libraries.mjs */
const libraries = Object.fromEntries(
  Object.keys(LIBRARIES).map((name) => [
    `^${name}$`,
    `<rootDir>/packages/testing/dist/libraries/${name.replaceAll('/', '+')}.mjs`,
  ]),
);

export default {
  roots,
  testMatch: only,
  testPathIgnorePatterns: ['/node_modules/', '/dist/', ...without],
  modulePathIgnorePatterns: ['/dist/package\\.json$'],
  globalSetup: '<rootDir>/packages/testing/jest/global-setup.mjs',
  globalTeardown: '<rootDir>/packages/testing/jest/global-teardown.mjs',
  reporters: ['default', '<rootDir>/packages/dev/dist/test/count-reporter.js'],
  testEnvironment: '<rootDir>/packages/testing/jest/environment.mjs',
  // Tests import this repository's packages from their sources, so that no stale build can pass.
  testEnvironmentOptions: { customExportConditions: ['source', 'node', 'node-addons'] },
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: {
    ...libraries,
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
  // Above the deadlines in the tests (60 s in eventually()), whose errors name the missing condition.
  testTimeout: 300_000,
};
