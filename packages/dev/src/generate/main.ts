/**
 * `npm run generate [-- --check]`: writes docs/configuration.md from the settings of the apps, docs/openapi.json
 * and docs/routes.md from the API's routes, docs/diagnoses.md and the event types in docs/webhooks.md from core, the types of the server SDK, the list in its
 * README and the types of the events from the OpenAPI document, and docs/signaling.schema.json and the browser SDK's
 * types from the signaling protocol. Reads the build output, so `npm run build` comes first.
 * With `--check` it writes nothing; if files are not up to date, it names them and exits with 1.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expectation, type Setting } from '@callplane/runtime';
import { format, type FormatConfig } from 'oxfmt';
import { Failure, root } from '../bootstrap.js';
import { protocolTypes } from './protocol-types.js';
import {
  eventTypes,
  openApiTypes,
  operationFacts,
  operationTypes,
  withFunctions,
  withGenerated,
} from './rest-types.js';

/** The apps with documented settings: a folder of apps/, and the schema that its config.js exports. */
const APPS: { folder: string; schema: string; about: string }[] = [
  { folder: 'api', schema: 'ApiConfig', about: 'Serves HTTP.' },
  { folder: 'cleanup-worker', schema: 'CleanupWorkerConfig', about: 'Ends rooms and removes participants.' },
  { folder: 'recorder', schema: 'RecorderConfig', about: 'Makes the files of recordings.' },
  { folder: 'webhook-worker', schema: 'WebhookWorkerConfig', about: 'Delivers webhooks.' },
  { folder: 'signaling', schema: 'SignalingConfig', about: 'The WebSocket gateway ([signaling.md](signaling.md)).' },
  {
    folder: 'cli',
    schema: 'CliConfig',
    about: 'The admin command line `rtc` ([cli.md](cli.md)). Commands read only the settings that they need.',
  },
];

const SDK_TYPES = 'packages/client-js/src/protocol.generated.ts';
const WEBHOOKS = 'docs/webhooks.md';
const SERVER_SDK = 'packages/server-js/src';
const SERVER_README = 'packages/server-js/README.md';

type SettingRow = [string, string, string, string];
const COLUMNS = ['default', 'form', 'meaning'];

interface Config {
  properties: Record<string, Setting>;
  required?: string[];
}

export async function main(args: string[]): Promise<void> {
  const check = args.includes('--check');
  const document = await openApi();
  const files = [
    { path: 'docs/configuration.md', content: await configuration() },
    { path: 'docs/openapi.json', content: `${JSON.stringify(document, null, 2)}\n` },
    await formatted('docs/routes.md', routes(document)),
    await formatted('docs/diagnoses.md', await diagnoses()),
    await formatted(WEBHOOKS, withGenerated(contentOf(WEBHOOKS) ?? '', await eventTypeTable())),
    ...(await restTypes(document)),
    { path: 'docs/signaling.schema.json', content: await signalingSchema() },
    await formatted(SDK_TYPES, await protocolTypes(await built('packages/protocol/dist/index.js'))),
  ];
  const stale = files.filter(({ path, content }) => contentOf(path) !== content);
  if (check && stale.length > 0) {
    for (const { path, content } of stale) console.log(diffOf(path, content));
    const paths = stale.map(({ path }) => path).join(', ');
    throw new Failure(`Not up to date: ${paths}. Added fields and routes are allowed: run "npm run generate"`);
  }
  for (const { path, content } of stale) {
    writeFileSync(join(root, path), content);
    console.log(`Wrote ${path}`);
  }
  if (stale.length === 0) console.log('Generated files are up to date.');
}

async function configuration() {
  const settings: { app: string; row: SettingRow }[] = [];
  for (const { folder, schema } of APPS) {
    const config = (await built(`apps/${folder}/dist/config.js`))[schema] as Config;
    for (const [name, setting] of Object.entries(config.properties)) {
      settings.push({ app: folder, row: settingRow(name, setting, config.required?.includes(name)) });
    }
  }
  /** The apps that read each setting with the same default, form and meaning. */
  const appsOf = new Map<string, typeof settings>();
  for (const each of settings) {
    const key = each.row.join('|');
    appsOf.set(key, [...(appsOf.get(key) ?? []), each]);
  }
  const shared = [...appsOf.values()].filter((readers) => readers.length > 1);
  const sharedRows = shared.map((readers) => {
    const [name, ...rest] = readers[0]!.row;
    return tableRow([name, readersOf(readers.map(({ app }) => app)), ...rest]);
  });
  const sections = APPS.map(({ folder, about }) => {
    const own = settings.filter(({ app, row }) => app === folder && appsOf.get(row.join('|'))!.length === 1);
    const table = [tableRow(['setting', ...COLUMNS]), tableRow(Array(4).fill('---'))];
    return `## ${folder}\n\n${about}\n\n${[...table, ...own.map(({ row }) => tableRow(row))].join('\n')}\n`;
  });
  return `# Configuration

<!-- Written by packages/dev/src/generate from apps/*/src/config.ts. Do not edit; run "npm run generate". -->

Each app reads its settings from the environment once, when it starts. If any are missing or wrong, it prints all
problems, never the value of a secret, and exits with code 1 (the command line with 2).

- An empty variable counts as not set. Write numbers in decimal, and lists with commas.
- A secret (marked with \`_FILE\`) can come from a file instead: \`DATABASE_URL_FILE=/run/secrets/database_url\`. White
  space at the end of the file is dropped. If both are set, the variable wins.
- All apps can share one environment. Each ignores settings of other apps.

## Shared settings

${[tableRow(['setting', 'apps', ...COLUMNS]), tableRow(Array(5).fill('---')), ...sharedRows].join('\n')}

${sections.join('\n')}`;
}

function settingRow(name: string, setting: Setting, required: boolean | undefined): SettingRow {
  const secret = setting.secret === true ? ', `_FILE`' : '';
  const form = formOf(expectation(setting), setting);
  return [`\`${name}\`${secret}`, defaultOf(setting, required), form, setting.description ?? ''];
}

function readersOf(apps: string[]): string {
  const others = APPS.map(({ folder }) => folder).filter((folder) => !apps.includes(folder));
  if (others.length === 0) return 'all';
  return others.length === 1 ? `all but ${others[0]}` : apps.join(', ');
}

function defaultOf(setting: Setting, required: boolean | undefined) {
  if (setting.default === undefined) return required ? '**required**' : '';
  if (Array.isArray(setting.default)) return setting.default.length === 0 ? '' : `\`${setting.default.join(',')}\``;
  return `\`${String(setting.default)}\``;
}

/** @param expectation `must be a whole number from 0 to 65535` */
function formOf(expectation: string, { minLength }: Setting) {
  const form = expectation.replace(/^must be /, '').replace(/^(a whole number from|one of) /, '');
  return minLength !== undefined && minLength > 1 ? `${form}, at least ${minLength} characters` : form;
}

function tableRow(cells: readonly string[]) {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

async function openApi() {
  const { apiRoutes } = await built('apps/api/dist/routes.js');
  const { openApiDocument } = await built('apps/api/dist/openapi/document.js');
  // The routes use their dependencies only when they handle a request, so an empty object is enough.
  return openApiDocument(apiRoutes({}));
}

function routes(document: any) {
  const rows = Object.entries<any>(document.paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, { summary, security, 'x-scope': scope }]) => [
      `\`${method.toUpperCase()} ${path}\``,
      scope === undefined ? (security?.length === 0 ? '' : 'any key') : `\`${scope}\``,
      summary,
    ]),
  );
  return `# Routes

<!-- Written by packages/dev/src/generate from the OpenAPI document. Do not edit; run "npm run generate". -->

The routes of the [API](api.md) with the scopes of their keys. [openapi.json](openapi.json) has every field.

${[['route', 'scope', 'effect'], Array(3).fill('---'), ...rows].map(tableRow).join('\n')}
`;
}

async function diagnoses() {
  const { DIAGNOSES } = (await built('packages/core/dist/index.js')) as {
    DIAGNOSES: Record<string, { summary: string; advice: string }>;
  };
  const rows = Object.entries(DIAGNOSES).map(([code, { summary, advice }]) => [`\`${code}\``, summary, advice]);
  return `# Diagnoses

<!-- Written by packages/dev/src/generate from packages/core/src/webhooks/diagnosis.ts. Do not edit; run "npm run generate". -->

Causes of failed attempts at a [delivery](webhooks.md#why-did-it-fail), by error code.

${[['code', 'cause', 'remedy'], Array(3).fill('---'), ...rows].map(tableRow).join('\n')}
`;
}

async function eventTypeTable() {
  const catalogue = (await built('apps/api/dist/events/event-types.js')).eventTypes();
  const rows = catalogue.data.map(({ type, description, schema }: any) => [
    `\`${type}\``,
    description,
    Object.keys(schema.properties.data.properties)
      .map((name) => `\`${name}\``)
      .join(', '),
  ]);
  return [['type', 'when', '`data`'], Array(3).fill('---'), ...rows].map(tableRow);
}

async function restTypes(document: any) {
  return [
    { path: `${SERVER_SDK}/openapi.generated.ts`, content: await openApiTypes(document) },
    await formatted(`${SERVER_SDK}/operations.generated.ts`, operationTypes(document)),
    await formatted(`${SERVER_SDK}/facts.generated.ts`, operationFacts(document)),
    await formatted(SERVER_README, withFunctions(contentOf(SERVER_README) ?? '', document)),
    { path: 'packages/webhook-verifier/src/events.generated.ts', content: await eventTypes(document) },
  ];
}

async function signalingSchema() {
  const protocol = await built('packages/protocol/dist/index.js');
  const tables = [
    { name: 'ClientMessage', side: 'client', messages: protocol.CLIENT_MESSAGES },
    { name: 'ServerMessage', side: 'server', messages: protocol.SERVER_MESSAGES },
  ];
  const unions: Record<string, object> = {};
  const definitions: Record<string, object> = {};
  for (const { name, side, messages } of tables) {
    const types = Object.keys(messages);
    unions[name] = { oneOf: types.map((type) => ({ $ref: `#/$defs/${side}.${type}` })) };
    for (const type of types) definitions[`${side}.${type}`] = messages[type];
  }
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `Signaling protocol ${protocol.SUBPROTOCOL}`,
    description: 'Every message over the WebSocket: one JSON object per text frame. docs/signaling.md explains them.',
    oneOf: Object.keys(unions).map((union) => ({ $ref: `#/$defs/${union}` })),
    $defs: { ...unions, ...definitions },
    'x-closeReasons': protocol.CLOSE_REASONS,
    'x-errorCodes': protocol.ERROR_CODES,
    'x-limits': protocol.PROTOCOL_LIMITS,
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

async function built(path: string): Promise<any> {
  try {
    return await import(pathToFileURL(join(root, path)).href);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Failure(`${path} cannot be loaded; run "npm run build" first`, String(error));
  }
}

function diffOf(path: string, content: string) {
  const known = contentOf(path) === undefined ? '/dev/null' : path;
  return spawnSync('git', ['diff', '--no-index', '--', known, '-'], { cwd: root, input: content, encoding: 'utf8' })
    .stdout;
}

function contentOf(path: string) {
  try {
    return readFileSync(join(root, path), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * A file in the layout of this repository (`.oxfmtrc.json`).
 * @throws Error if the text cannot be parsed
 */
async function formatted(path: string, text: string): Promise<{ path: string; content: string }> {
  const config = JSON.parse(readFileSync(join(root, '.oxfmtrc.json'), 'utf8')) as FormatConfig;
  const { code, errors } = await format(join(root, path), text, config);
  if (errors[0] !== undefined) throw new Error(`${path} cannot be formatted: ${errors[0].message}`);
  return { path, content: code };
}
