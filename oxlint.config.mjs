/** The rules of ESLint and of typescript-eslint's strict set, as oxlint runs them. */

/** Imports point one way: core ← (db, queue, runtime, media) ← apps; see docs/architecture.md. */
const mayImport = {
  'packages/core': [],
  'packages/db': ['core'],
  // Takes connections to PostgreSQL from db. Writes no row of the service, so it needs none of its rules.
  'packages/migrations': ['db'],
  'packages/queue': ['core'],
  'packages/runtime': ['core'],
  'packages/media': ['core'],
  'packages/store': [],
  'packages/operations': ['core', 'db', 'queue', 'runtime'],
  'packages/protocol': [],
  'packages/local-servers': [],
  'packages/dev': ['core', 'db', 'local-servers', 'media', 'protocol', 'queue', 'runtime'],
  // A package that customers import depends on nothing.
  'packages/webhook-verifier': [],
  'packages/server-js': ['webhook-verifier'],
  'packages/testing': ['core', 'db', 'migrations', 'queue', 'runtime', 'local-servers'],
  'apps/{api,cleanup-worker,recorder,webhook-worker,signaling}': [
    ...['core', 'db', 'queue', 'runtime', 'media', 'protocol', 'operations', 'store'],
  ],
  // Only `rtc` migrates.
  'apps/cli': ['client-js', 'core', 'db', 'migrations', 'queue', 'runtime', 'media', 'protocol', 'server', 'store'],
  // The browser SDK depends on nothing at run time; the protocol's types are generated into it.
  'packages/client-js': [],
  // Of the SDK a peer, as for its users.
  'packages/react': ['client-js'],
  'apps/demo': ['client-js', 'react'],
  // Of core, only the tables of options, which need nothing of Node.
  'apps/console': ['client-js', 'core', 'react', 'server'],
};
const everyPackage = [
  'core',
  'db',
  'migrations',
  'queue',
  'runtime',
  'media',
  'operations',
  'store',
  'protocol',
  'local-servers',
  'webhook-verifier',
  'client-js',
  'react',
  'server',
  'testing',
  'dev',
  'lab',
  'api',
  'cleanup-worker',
  'recorder',
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

const onlyOptionsOfCore = { regex: '^@callplane/core$', message: 'A page imports @callplane/core/options alone.' };

const promStaysInRuntime = { group: ['prom-client'], message: 'packages/runtime is the only importer of prom-client.' };

/**
 * Folders of apps/signaling/src from the lowest to the highest. A folder imports only those before it, so no circle can
 * form. `connections`, the transport over WebSockets, knows only the port in `clients`, and no folder knows it. Only the
 * files at the root join them. `whip` is the transport over HTTP, whose requests need rows and the gate as well.
 */
const signalingLayers = ['clients', 'rooms', 'writes', 'media', 'sessions', 'arrivals', 'requests', 'whip'];
const signalingTransport = 'connections';
const forbiddenFolders = (folder) => {
  const isTransport = folder === signalingTransport;
  const forbidden = signalingLayers.slice(isTransport ? 1 : signalingLayers.indexOf(folder) + 1);
  return [
    {
      group: [
        ...[...forbidden, signalingTransport].flatMap((name) => [`../${name}/*`, `../../${name}/*`]),
        ...['config', 'gateway', 'main'].flatMap((name) => [`../${name}.js`, `../../${name}.js`]),
      ],
      message: `Folders import downwards: ${[...signalingLayers].reverse().join(' → ')} ← ${signalingTransport}; the root joins them.`,
    },
    ...(isTransport ? [] : [{ group: ['ws'], message: 'Take the port of clients/client.ts, not a WebSocket.' }]),
  ];
};

const correctness = [
  'constructor-super',
  'for-direction',
  'getter-return',
  'no-async-promise-executor',
  'no-case-declarations',
  'no-class-assign',
  'no-compare-neg-zero',
  'no-cond-assign',
  'no-const-assign',
  'no-constant-binary-expression',
  'no-constant-condition',
  'no-control-regex',
  'no-debugger',
  'no-delete-var',
  'no-dupe-class-members',
  'no-dupe-else-if',
  'no-dupe-keys',
  'no-duplicate-case',
  'no-empty',
  'no-empty-character-class',
  'no-empty-pattern',
  'no-empty-static-block',
  'no-ex-assign',
  'no-extra-boolean-cast',
  'no-fallthrough',
  'no-func-assign',
  'no-global-assign',
  'no-import-assign',
  'no-invalid-regexp',
  'no-irregular-whitespace',
  'no-loss-of-precision',
  'no-misleading-character-class',
  'no-new-native-nonconstructor',
  'no-nonoctal-decimal-escape',
  'no-obj-calls',
  'no-prototype-builtins',
  'no-regex-spaces',
  'no-self-assign',
  'no-setter-return',
  'no-shadow-restricted-names',
  'no-sparse-arrays',
  'no-this-before-super',
  'no-unassigned-vars',
  'no-unexpected-multiline',
  'no-unreachable',
  'no-unsafe-finally',
  'no-unsafe-negation',
  'no-unsafe-optional-chaining',
  'no-unused-labels',
  'no-unused-private-class-members',
  'no-useless-assignment',
  'no-useless-backreference',
  'no-useless-catch',
  'no-useless-escape',
  'no-with',
  'preserve-caught-error',
  'require-yield',
  'use-isnan',
  'valid-typeof',
];
const strict = [
  'no-var',
  'prefer-const',
  'prefer-rest-params',
  'prefer-spread',
  'typescript/await-thenable',
  'no-array-constructor',
  'typescript/no-array-delete',
  'typescript/no-base-to-string',
  'typescript/no-deprecated',
  'typescript/no-duplicate-enum-values',
  'typescript/no-duplicate-type-constituents',
  'typescript/no-dynamic-delete',
  'typescript/no-empty-object-type',
  'typescript/no-explicit-any',
  'typescript/no-extra-non-null-assertion',
  'typescript/no-extraneous-class',
  'typescript/no-floating-promises',
  'typescript/no-for-in-array',
  'typescript/no-generated-empty-object-type',
  'typescript/no-implied-eval',
  'typescript/no-invalid-void-type',
  'typescript/no-meaningless-void-operator',
  'typescript/no-misused-new',
  'typescript/no-misused-promises',
  'typescript/no-misused-spread',
  'typescript/no-mixed-enums',
  'typescript/no-namespace',
  'typescript/no-non-null-asserted-nullish-coalescing',
  'typescript/no-non-null-asserted-optional-chain',
  'typescript/no-non-null-assertion',
  'typescript/no-redundant-type-constituents',
  'typescript/no-require-imports',
  'typescript/no-this-alias',
  'typescript/no-unnecessary-boolean-literal-compare',
  'typescript/no-unnecessary-condition',
  'typescript/no-unnecessary-template-expression',
  'typescript/no-unnecessary-type-arguments',
  'typescript/no-unnecessary-type-assertion',
  'typescript/no-unnecessary-type-constraint',
  'typescript/no-unnecessary-type-conversion',
  'typescript/no-unsafe-argument',
  'typescript/no-unsafe-assignment',
  'typescript/no-unsafe-call',
  'typescript/no-unsafe-declaration-merging',
  'typescript/no-unsafe-function-type',
  'typescript/no-unsafe-member-access',
  'typescript/no-unsafe-return',
  'typescript/no-unsafe-unary-minus',
  'no-unused-expressions',
  'no-useless-constructor',
  'typescript/no-useless-default-assignment',
  'typescript/no-wrapper-object-types',
  'typescript/only-throw-error',
  'typescript/prefer-as-const',
  'typescript/prefer-literal-enum-member',
  'typescript/prefer-namespace-keyword',
  'typescript/prefer-promise-reject-errors',
  'typescript/prefer-reduce-type-parameter',
  'typescript/prefer-return-this-type',
  'typescript/related-getter-setter-pairs',
  'typescript/require-await',
  'typescript/triple-slash-reference',
  'typescript/unified-signatures',
  'typescript/use-unknown-in-catch-callback-variable',
  'typescript/consistent-type-imports',
];

const errors = (names) => Object.fromEntries(names.map((name) => [name, 'error']));
const off = (names) => Object.fromEntries(names.map((name) => [name, 'off']));
/** Inputs that a function must get from its caller, so that tests and the simulation decide them. */
const ambient = ['no-restricted-properties', 'callplane/ambient-time'];
const ambientProperties = [
  { object: 'process', property: 'env', message: 'The environment is parsed once, in config.ts through runtime.' },
  { object: 'Date', property: 'now', message: 'Take the time from the clock that is passed in.' },
  { object: 'Math', property: 'random', message: 'Take randomness from the source that is passed in.' },
  {
    object: 'URL',
    property: 'canParse',
    message: 'Node 20 answers wrongly for characters outside ASCII; use parseUrl of core.',
  },
];
const notTests = ['**/*.test.ts', '**/*.testkit.ts'];

export default {
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: 'error' },
  plugins: ['typescript', 'import'],
  jsPlugins: ['./scripts/lib/lint-plugin.mjs'],
  categories: { correctness: 'off' },
  env: { builtin: true },
  ignorePatterns: [
    '**/dist/**',
    '**/generated/**',
    '**/*.generated.ts',
    '**/.turbo/**',
    '.data/**',
    '.tools/**',
    'node_modules/**',
  ],
  rules: {
    ...errors(correctness),
    'no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    // Imports of types count: files that need each other's types cannot be understood apart.
    'import/no-cycle': ['error', { ignoreTypes: false }],
  },
  overrides: [
    {
      files: ['**/*.ts', 'apps/{console,demo}/src/**/*.tsx', 'packages/react/**/*.tsx'],
      rules: {
        ...errors(strict),
        'callplane/ambient-time': 'error',
        'no-restricted-properties': ['error', ...ambientProperties],
        'typescript/ban-ts-comment': ['error', { minimumDescriptionLength: 10 }],
        'typescript/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
        'typescript/restrict-plus-operands': [
          'error',
          {
            allowAny: false,
            allowBoolean: false,
            allowNullish: false,
            allowNumberAndString: false,
            allowRegExp: false,
          },
        ],
        'typescript/restrict-template-expressions': ['error', { allowNumber: true }],
        'typescript/return-await': ['error', 'error-handling-correctness-only'],
        'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      },
    },
    {
      // The compiler finds these in TypeScript.
      files: ['**/*.{js,mjs}'],
      env: { node: true },
      rules: errors(['no-undef', 'no-redeclare']),
    },
    { files: ['tests/browser/page.mjs'], env: { browser: true } },
    ...Object.entries(mayImport).map(([folder, allowed]) => ({
      files: [`${folder}/src/**/*.{ts,tsx}`],
      excludeFiles: notTests,
      rules: {
        'no-restricted-imports': importRule(allowed, [
          ...(postgresPackages.includes(folder) ? [] : [prismaStaysInDb]),
          ...(['packages/queue', 'packages/dev'].includes(folder) ? [] : [bullmqStaysInQueue]),
          ...(folder === 'packages/runtime' ? [] : [promStaysInRuntime]),
          ...(folder === 'apps/console' ? [onlyOptionsOfCore] : []),
        ]),
      },
    })),
    ...[...signalingLayers, signalingTransport].map((folder) => ({
      files: [`apps/signaling/src/${folder}/**/*.ts`],
      excludeFiles: notTests,
      rules: {
        'no-restricted-imports': importRule(mayImport['apps/{api,cleanup-worker,recorder,webhook-worker,signaling}'], [
          prismaStaysInDb,
          bullmqStaysInQueue,
          promStaysInRuntime,
          ...forbiddenFolders(folder),
        ]),
      },
    })),
    {
      files: ['apps/signaling/src/**/*.ts'],
      excludeFiles: [...notTests, '**/config.ts'],
      rules: {
        'max-lines': ['error', { max: 300 }],
        'max-lines-per-function': ['error', { max: 60 }],
      },
    },
    {
      files: [
        'packages/runtime/src/**',
        'packages/local-servers/src/**',
        'packages/dev/src/**',
        'lab/**',
        'packages/testing/src/**',
        'packages/webhook-verifier/src/**',
        '**/main.ts',
        // These pass the clock or the randomness of the machine on.
        'apps/console/src/{moving-time,stream/stream}.ts',
        'apps/cli/src/media/agent.ts',
        'packages/client-js/src/platform.ts',
        'packages/server-js/src/client.ts',
        '**/*.test.ts',
        '**/*.testkit.ts',
        'tests/**',
        'scripts/**',
      ],
      rules: off(ambient),
    },
    {
      // Benchmarks and generators, like tests, read files that other modules of this repository wrote.
      files: [
        '**/*.test.ts',
        '**/*.testkit.ts',
        'tests/**',
        'lab/simulation/**',
        'lab/src/bench/**',
        'packages/dev/src/generate/**',
      ],
      rules: off([
        'typescript/no-non-null-assertion',
        'typescript/no-unsafe-assignment',
        'typescript/no-unsafe-member-access',
        'typescript/no-unsafe-argument',
        'typescript/no-unsafe-return',
        'typescript/no-unsafe-call',
        'typescript/no-explicit-any',
        'typescript/restrict-plus-operands',
        'typescript/require-await',
      ]),
    },
  ],
};
