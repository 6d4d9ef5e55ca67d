/**
 * `npm run generate [-- --check]`: writes docs/configuration.md from the settings of the apps, docs/openapi.json from
 * the routes of the API, and from the signaling protocol docs/signaling.schema.json and the SDK's types. Reads what was
 * built, so `npm run build` comes first. With `--check` it writes nothing, names
 * the files that are not up to date and exits with 1.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { protocolTypes } from './generate/protocol-types.mjs';
import { explain, Failure } from './lib/failure.mjs';
import { root } from './lib/files.mjs';

/**
 * The apps whose settings are documented: a folder of apps/, and the schema that its config.js exports.
 * @type {{ folder: string, schema: string, about: string }[]}
 */
const APPS = [
  { folder: 'api', schema: 'ApiConfig', about: 'Serves HTTP.' },
  { folder: 'cleanup-worker', schema: 'CleanupWorkerConfig', about: 'Ends rooms and removes participants.' },
  { folder: 'webhook-worker', schema: 'WebhookWorkerConfig', about: 'Delivers webhooks.' },
  { folder: 'signaling', schema: 'SignalingConfig', about: 'The WebSocket gateway ([signaling.md](signaling.md)).' },
  {
    folder: 'cli',
    schema: 'CliConfig',
    about: 'The admin command line `rtc` ([cli.md](cli.md)). Commands read only what they need.',
  },
];

const SDK_TYPES = 'packages/client-js/src/protocol.generated.ts';

/** @typedef {{ default?: unknown, description?: string, minItems?: number, minLength?: number, items?: { pattern?: string } }} Setting */

try {
  const check = process.argv.includes('--check');
  const files = [
    { path: 'docs/configuration.md', content: await configuration() },
    { path: 'docs/openapi.json', content: await openApi() },
    { path: 'docs/signaling.schema.json', content: await signalingSchema() },
    {
      path: SDK_TYPES,
      content: await protocolTypes(await built('packages/protocol/dist/index.js'), join(root, SDK_TYPES)),
    },
  ];
  const stale = files.filter(({ path, content }) => contentOf(path) !== content);
  if (check && stale.length > 0) {
    throw new Failure(`Not up to date: ${stale.map(({ path }) => path).join(', ')}. Run "npm run generate"`);
  }
  for (const { path, content } of stale) {
    writeFileSync(join(root, path), content);
    console.log(`Wrote ${path}`);
  }
  if (stale.length === 0) console.log('Generated files are up to date.');
} catch (error) {
  explain(error);
  process.exitCode = 1;
}

async function configuration() {
  const runtime = await built('packages/runtime/dist/index.js');
  const tables = [];
  for (const { folder, schema, about } of APPS) {
    const config = (await built(`apps/${folder}/dist/config.js`))[schema];
    /** @type {[string, Setting][]} */
    const settings = Object.entries(config.properties);
    const rows = settings.map(([name, setting]) => {
      const secret = runtime.isSecret(setting) ? ` or \`${name}_FILE\`` : '';
      const form = formOf(runtime.expectation(setting), setting);
      const cells = [`\`${name}\`${secret}`, defaultOf(setting, config.required?.includes(name)), form];
      return row([...cells, setting.description ?? '']);
    });
    tables.push(
      [
        `## ${folder}`,
        '',
        about,
        '',
        row(['setting', 'default', 'form', 'meaning']),
        row(Array(4).fill('---')),
        ...rows,
      ]
        .join('\n')
        .concat('\n'),
    );
  }
  return `# Configuration

<!-- Written by scripts/generate.mjs from apps/*/src/config.ts. Do not edit; run "npm run generate". -->

Each app reads its settings from the environment, once, when it starts. If any are missing or wrong it prints all the
problems, never the value of a secret, and exits with code 1 (the command line with 2).

- An empty variable counts as not set.
- Numbers are written in decimal, lists with commas.
- A secret can stand in a file instead: \`DATABASE_URL_FILE=/run/secrets/database_url\`. White space at the file's end is
  dropped. The variable itself wins where both are set.
- Names are the same in every app, so all of them can share one environment; an app ignores what is not its own.

${tables.join('\n')}`;
}

/**
 * @param {Setting} setting
 * @param {boolean | undefined} required
 */
function defaultOf(setting, required) {
  if (setting.default === undefined) return required ? '**required**' : 'none';
  if (Array.isArray(setting.default)) return setting.default.length === 0 ? 'none' : `\`${setting.default.join(',')}\``;
  return `\`${setting.default}\``;
}

/**
 * @param {string} expectation `must be a whole number from 0 to 65535`
 * @param {Setting} setting
 */
function formOf(expectation, { minItems, minLength, items }) {
  const more = [
    ...(minLength !== undefined && minLength > 1 ? [`at least ${minLength} characters`] : []),
    ...(minItems === undefined ? [] : [`at least ${minItems}`]),
    ...(items?.pattern === undefined ? [] : [`each like \`${items.pattern}\``]),
  ];
  return [expectation.replace(/^must be /, ''), ...more].join(', ');
}

/** @param {string[]} cells */
function row(cells) {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

async function openApi() {
  const { apiRoutes } = await built('apps/api/dist/routes.js');
  const { openApiDocument } = await built('apps/api/dist/openapi/document.js');
  // Routes reach for what they are given only when they handle a request.
  return `${JSON.stringify(openApiDocument(apiRoutes({})), null, 2)}\n`;
}

async function signalingSchema() {
  const protocol = await built('packages/protocol/dist/index.js');
  /** @param {Record<string, object>} messages @param {string} side */
  const definitions = (messages, side) =>
    Object.fromEntries(Object.entries(messages).map(([type, schema]) => [`${side}.${type}`, schema]));
  /** @param {Record<string, object>} messages @param {string} side */
  const oneOf = (messages, side) => ({
    oneOf: Object.keys(messages).map((type) => ({ $ref: `#/$defs/${side}.${type}` })),
  });
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `Signaling protocol ${protocol.SUBPROTOCOL}`,
    description: 'Every message over the WebSocket: one JSON object a text frame. docs/signaling.md explains them.',
    oneOf: [{ $ref: '#/$defs/ClientMessage' }, { $ref: '#/$defs/ServerMessage' }],
    $defs: {
      ClientMessage: oneOf(protocol.CLIENT_MESSAGES, 'client'),
      ServerMessage: oneOf(protocol.SERVER_MESSAGES, 'server'),
      ...definitions(protocol.CLIENT_MESSAGES, 'client'),
      ...definitions(protocol.SERVER_MESSAGES, 'server'),
    },
    'x-closeReasons': protocol.CLOSE_REASONS,
    'x-errorCodes': protocol.ERROR_CODES,
    'x-limits': protocol.PROTOCOL_LIMITS,
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/**
 * @param {string} path
 * @returns {Promise<any>}
 */
async function built(path) {
  try {
    return await import(pathToFileURL(join(root, path)).href);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Failure(`${path} cannot be loaded; run "npm run build" first`, String(error));
  }
}

/** @param {string} path */
function contentOf(path) {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined;
    throw error;
  }
}
