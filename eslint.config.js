import js from '@eslint/js';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** Imports point one way: core ← (db, queue, runtime, media) ← apps; see docs/architecture.md. */
const mayImport = {
  'packages/core': [],
  'packages/db': ['core'],
  'packages/queue': ['core'],
  'packages/runtime': ['core'],
  'packages/media': ['core'],
  'packages/protocol': [],
  'packages/local-servers': [],
  // What a customer imports depends on nothing.
  'packages/webhook-verifier': [],
  'packages/testing': ['core', 'db', 'queue', 'runtime', 'local-servers'],
  'apps/!(demo)': ['core', 'db', 'queue', 'runtime', 'media', 'protocol'],
  // The browser SDK depends on nothing at run time; the protocol's types are generated into it.
  'packages/client-js': [],
  'apps/demo': ['client-js'],
};
const everyPackage = [
  'core',
  'db',
  'queue',
  'runtime',
  'media',
  'protocol',
  'local-servers',
  'webhook-verifier',
  'client-js',
  'testing',
  'api',
  'cleanup-worker',
  'webhook-worker',
  'signaling',
  'demo',
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
const prismaStaysInDb = {
  group: ['@prisma/*', 'pg', '**/generated/**'],
  message: 'packages/db is the only importer of Prisma and pg.',
};
const bullmqStaysInQueue = { group: ['bullmq'], message: 'packages/queue is the only importer of BullMQ.' };

const promStaysInRuntime = { group: ['prom-client'], message: 'packages/runtime is the only importer of prom-client.' };

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
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // Our objects are closures: their functions use no `this`.
      '@typescript-eslint/unbound-method': 'off',
      'no-restricted-syntax': ['error', ...ambient],
    },
  },
  { files: ['**/*.{js,mjs}'], languageOptions: { globals: globals.node } },
  { files: ['tests/browser/page.mjs'], languageOptions: { globals: globals.browser } },
  ...Object.entries(mayImport).map(([folder, allowed]) => ({
    files: [`${folder}/src/**/*.ts`],
    ignores: ['**/*.test.ts', '**/*.testkit.ts'],
    rules: {
      'no-restricted-imports': importRule(allowed, [
        ...(['packages/db', 'packages/testing'].includes(folder) ? [] : [prismaStaysInDb]),
        ...(folder === 'packages/queue' ? [] : [bullmqStaysInQueue]),
        ...(folder === 'packages/runtime' ? [] : [promStaysInRuntime]),
      ]),
    },
  })),
  {
    files: [
      'packages/runtime/src/**',
      'packages/local-servers/src/**',
      'packages/testing/src/**',
      'packages/webhook-verifier/src/**',
      '**/main.ts',
      '**/*.test.ts',
      '**/*.testkit.ts',
      'tests/**',
      'scripts/**',
    ],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    files: ['**/*.test.ts', '**/*.testkit.ts', 'tests/**'],
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
