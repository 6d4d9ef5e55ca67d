import { randomBytes } from 'node:crypto';
import { buildRequest, OPERATIONS, type AllOptions, type OperationId } from '@callplane/server/requests';
import type { Command } from 'commander';
import type { Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { addCommand, print, printList, type OutputOptions } from './output.js';
import { serviceAccess, URL_OPTION } from './service-access.js';
import { quoted } from './terminal.js';

interface ApiOptions extends OutputOptions {
  url?: string;
  key?: string;
  idempotencyKey?: string;
}

/** The API waits up to 20 s for events and operations. */
const TIMEOUT_MS = 60_000;
/** How a request of the console's own cookie works makes no sense with a key. */
const WITHOUT_KEY = ['createConsoleSession', 'endConsoleSession'];
const IDS = (Object.keys(OPERATIONS) as OperationId[]).filter((id) => !WITHOUT_KEY.includes(id));

const FIELD_HELP = `
Fields are name=value for text, and name:=value for JSON: numbers, booleans, lists, objects and null.
Without an operation, the command lists the operations of the API.`;

/** Adds `rtc api`, which calls the operations of the OpenAPI document with an API key, except for its stream. */
export function addApiCommand(rtc: Command, cli: Cli): void {
  const example = 'rtc api createRoom name=Consultation maxParticipants:=10';
  addCommand(rtc, 'api [operation] [fields...]', 'Call an operation of the API with an API key', example)
    .option(...URL_OPTION)
    .option('--key <key>', 'a secret API key (default: CALLPLANE_API_KEY)')
    .option('--idempotency-key <key>', 'of a repeated change (default: a new one)')
    .addHelpText('after', FIELD_HELP)
    .action((operation: string | undefined, fields: string[], options: ApiOptions) =>
      operation === undefined ? list(cli, options) : call(cli, options, operation, fields),
    );
}

function list(cli: Cli, options: ApiOptions): void {
  const rows = IDS.map((id) => ({ operation: id, method: OPERATIONS[id].method, path: OPERATIONS[id].path }));
  printList(cli, options, rows, {
    OPERATION: (row) => row.operation,
    METHOD: (row) => row.method,
    PATH: (row) => row.path,
  });
}

async function call(cli: Cli, options: ApiOptions, operation: string, fields: readonly string[]): Promise<void> {
  const id = IDS.find((one) => one === operation);
  if (id === undefined) {
    throw new UsageError(`The API has no operation ${quoted(operation)}. "rtc api" lists operations.`);
  }
  const { url, key } = serviceAccess(cli, options);
  const { target, headers, body, facts } = requestOf(id, inputOf(fields), options);
  // Whether the change has happened is unknown then. With the same key it happens once.
  const idempotencyKey = headers['idempotency-key'];
  const repetition =
    idempotencyKey === undefined ? '' : ` To repeat the change safely, add --idempotency-key ${idempotencyKey}.`;
  let response: Response;
  let text: string;
  try {
    response = await fetch(`${url}${target}`, {
      method: facts.method,
      headers: { ...headers, authorization: `Bearer ${key}` },
      ...(body === undefined ? {} : { body }),
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = await response.text();
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } };
    throw new CommandError(`${url} does not answer: ${cause?.code ?? (error as Error).message}.${repetition}`);
  }
  const answer = parse(text);
  // A page of a proxy may come with 200, although the API did nothing.
  if (!response.ok || (answer === undefined && text !== '')) throw refusal(url, response.status, answer, repetition);
  const result = typeof answer === 'object' && answer !== null ? answer : { status: response.status };
  print(cli, options, result, JSON.stringify(result, null, 2));
}

function requestOf(id: OperationId, input: object, { idempotencyKey }: ApiOptions): ReturnType<typeof buildRequest> {
  const given: AllOptions = idempotencyKey === undefined ? {} : { idempotencyKey };
  try {
    return buildRequest(id, OPERATIONS[id], { input, options: given, newKey: () => randomBytes(16).toString('hex') });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

const FIELD = /^([A-Za-z]\w*)(:?)=([^]*)$/;

function inputOf(fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    fields.map((field) => {
      const [, name, isJson, value = ''] = FIELD.exec(field) ?? [];
      if (name === undefined) throw new UsageError(`Give fields as name=value or name:=json, not ${quoted(field)}.`);
      if (isJson === '') return [name, value];
      const parsed = parse(value);
      if (parsed === undefined) throw new UsageError(`${name}:= needs JSON, not ${quoted(value)}.`);
      return [name, parsed];
    }),
  );
}

/** Undefined for a text that is no JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

interface ErrorAnswer {
  error?: { code?: unknown; message?: unknown; requestId?: unknown; details?: unknown };
}

function refusal(url: string, status: number, answer: unknown, repetition: string): CommandError {
  const { error } = (answer ?? {}) as ErrorAnswer;
  if (typeof error?.code !== 'string') {
    const why = `${url} answered HTTP ${status} without an error of the API. A proxy may have answered.`;
    return new CommandError(`${why}${repetition}`);
  }
  const { code, message, requestId, details } = error;
  const wrong = (Array.isArray(details) ? details : [])
    .map((detail: { path?: unknown; message?: unknown } | null) => `${String(detail?.path)} ${String(detail?.message)}`)
    // The message of an invalid request is its first detail.
    .filter((text) => !String(message).startsWith(text));
  return new CommandError(
    `${[`${code}: ${String(message)}`, ...wrong].join('; ')} (HTTP ${status}, request ${String(requestId)})`,
  );
}
