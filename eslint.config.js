import js from '@eslint/js';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** Imports point one way: core ← (db, queue, runtime, media) ← apps; see docs/architecture.md. */
const mayImport = {
  'packages/core': [],
  'packages/db': ['core'],
  // Takes connections to PostgreSQL from db. Writes no row of the service, so it needs none of its rules.
  'packages/migrations': ['db'],
  'packages/queue': ['core'],
  'packages/runtime': ['core'],
  'packages/media': ['core'],
  'packages/protocol': [],
  'packages/local-servers': [],
  'packages/dev': ['client-js', 'core', 'db', 'local-servers', 'protocol', 'queue', 'runtime'],
  // A package that customers import depends on nothing.
  'packages/webhook-verifier': [],
  'packages/server-js': ['webhook-verifier'],
  'packages/testing': ['core', 'db', 'migrations', 'queue', 'runtime', 'local-servers'],
  'apps/!(cli|demo|console)': ['core', 'db', 'queue', 'runtime', 'media', 'protocol'],
  // Only `rtc` migrates. The images of the other apps contain no schema engine.
  'apps/cli': ['core', 'db', 'migrations', 'queue', 'runtime', 'media', 'protocol'],
  // The browser SDK depends on nothing at run time; the protocol's types are generated into it.
  'packages/client-js': [],
  'apps/demo': ['client-js'],
  'apps/console': ['client-js', 'server'],
};
const everyPackage = [
  'core',
  'db',
  'migrations',
  'queue',
  'runtime',
  'media',
  'protocol',
  'local-servers',
  'webhook-verifier',
  'client-js',
  'server',
  'testing',
  'dev',
  'api',
  'cleanup-worker',
  'webhook-worker',
  'signaling',
  'demo',
  'console',
  'cli',
];

const importRule = (allowed, extra = []) => [
  'error',
  {
    patterns: [
      {
        group: everyPackage.filter((name) => !allowed.includes(name)).map((name) => `@callplane/${name}`),
        message:
          'Imports point one way (docs/architecture.md): core ← (db, queue, runtime, media) ← apps; only tests import testing.',
      },
      { group: ['**/apps/*/**', '**/packages/*/src/**'], message: 'Import another package by its name.' },
      ...extra,
    ],
  },
];
const postgresPackages = ['packages/db', 'packages/migrations', 'packages/testing', 'packages/dev'];
const prismaStaysInDb = {
  group: ['@prisma/*', 'pg', '**/generated/**'],
  message: 'Only packages/db and packages/migrations import Prisma and pg.',
};
const bullmqStaysInQueue = { group: ['bullmq'], message: 'packages/queue is the only importer of BullMQ.' };

const promStaysInRuntime = { group: ['prom-client'], message: 'packages/runtime is the only importer of prom-client.' };

/**
 * Folders of apps/signaling/src from the lowest to the highest. A folder imports only those before it, so no circle can
 * form. Only the files at the root join them.
 */
const signalingLayers = ['states', 'batching', 'connections', 'rooms', 'media', 'sessions', 'admission', 'requests'];
const higherFolders = (folder) => {
  const higher = signalingLayers.slice(signalingLayers.indexOf(folder) + 1);
  return {
    group: [
      ...higher.flatMap((name) => [`../${name}/*`, `../../${name}/*`]),
      ...['config', 'deps', 'gateway', 'main', 'metrics', 'server'].flatMap((name) => [
        `../${name}.js`,
        `../../${name}.js`,
      ]),
    ],
    message: `Folders import downwards: ${[...signalingLayers].reverse().join(' → ')}; the root joins them.`,
  };
};

const packedLines = {
  selector: 'ObjectExpression > SpreadElement > ObjectExpression',
  message: 'Write the properties themselves: a spread of an object literal only packs lines.',
};
const enums = {
  selector: 'TSEnumDeclaration',
  message: 'Use a union of literals, which needs no code at run time; the rules about enums are off.',
};
const ambient = [
  {
    selector: "MemberExpression[object.name='process'][property.name='env']",
    message: 'The environment is parsed once, in config.ts through runtime.',
  },
  {
    selector: "CallExpression[callee.object.name='Date'][callee.property.name='now']",
    message: 'Take the time from the clock that is passed in.',
  },
  {
    selector: "NewExpression[callee.name='Date'][arguments.length=0]",
    message: 'Take the time from the clock that is passed in.',
  },
  {
    selector: "CallExpression[callee.object.name='Math'][callee.property.name='random']",
    message: 'Take randomness from the source that is passed in.',
  },
  {
    selector: "MemberExpression[object.name='URL'][property.name='canParse']",
    message: 'Node 20 answers wrongly for characters outside ASCII; use parseUrl of core.',
  },
];

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      '**/generated/**',
      '**/*.generated.ts',
      '**/.turbo/**',
      '.data/**',
      '.tools/**',
      'node_modules/**',
    ],
  },
  js.configs.recommended,
  { rules: { 'no-restricted-syntax': ['error', packedLines] } },
  {
    files: ['**/*.ts', 'apps/console/src/**/*.tsx'],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: {
        // The programs of `npm run typecheck`. With a program for each package (projectService), lint takes half as long
        // again: measured 147 s and 95 s of processor time.
        project: [
          'tsconfig.json',
          'tests/tsconfig.json',
          'packages/dev/tsconfig.json',
          'packages/client-js/tsconfig.json',
          'packages/client-js/examples/tsconfig.json',
          'apps/demo/tsconfig.json',
          'apps/console/tsconfig.json',
        ],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // There are no enums (no-restricted-syntax). This rule alone took a seventh of the time of all rules.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-enum-comparison': 'off',
      // This project builds objects from closures: their functions use no `this`.
      '@typescript-eslint/unbound-method': 'off',
      'no-restricted-syntax': ['error', packedLines, enums, ...ambient],
    },
  },
  { files: ['**/*.{js,mjs}'], languageOptions: { globals: globals.node } },
  { files: ['tests/browser/page.mjs'], languageOptions: { globals: globals.browser } },
  ...Object.entries(mayImport).map(([folder, allowed]) => ({
    files: [`${folder}/src/**/*.{ts,tsx}`],
    ignores: ['**/*.test.ts', '**/*.testkit.ts'],
    rules: {
      'no-restricted-imports': importRule(allowed, [
        ...(postgresPackages.includes(folder) ? [] : [prismaStaysInDb]),
        ...(['packages/queue', 'packages/dev'].includes(folder) ? [] : [bullmqStaysInQueue]),
        ...(folder === 'packages/runtime' ? [] : [promStaysInRuntime]),
      ]),
    },
  })),
  ...signalingLayers.map((folder) => ({
    files: [`apps/signaling/src/${folder}/**/*.ts`],
    ignores: ['**/*.test.ts', '**/*.testkit.ts'],
    rules: {
      'no-restricted-imports': importRule(mayImport['apps/!(cli|demo|console)'], [
        prismaStaysInDb,
        bullmqStaysInQueue,
        promStaysInRuntime,
        higherFolders(folder),
      ]),
    },
  })),
  {
    files: ['apps/signaling/src/**/*.ts'],
    ignores: ['**/*.test.ts', '**/*.testkit.ts', '**/config.ts', '**/demo/**'],
    rules: {
      'max-lines': ['error', { max: 250 }],
      'max-lines-per-function': ['error', { max: 60 }],
    },
  },
  {
    files: [
      'packages/runtime/src/**',
      'packages/local-servers/src/**',
      'packages/dev/src/**',
      'packages/testing/src/**',
      'packages/webhook-verifier/src/**',
      '**/main.ts',
      'apps/console/src/clock.ts',
      '**/*.test.ts',
      '**/*.testkit.ts',
      'tests/**',
      'scripts/**',
    ],
    rules: { 'no-restricted-syntax': ['error', packedLines, enums] },
  },
  {
    // Benchmarks and generators, like tests, read what other modules of this repository wrote.
    files: ['**/*.test.ts', '**/*.testkit.ts', 'tests/**', 'packages/dev/src/{bench,generate}/**'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/restrict-plus-operands': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
);
