import { randomBytes } from 'node:crypto';
import { OPERATIONS, type OperationId } from '@callplane/server/requests';
import type { Command } from 'commander';
import type { Cli } from './cli.js';
import { UsageError } from './failure.js';
import { addCommand, print, printList, type OutputOptions } from './output.js';
import { serviceFailure, serviceOf, URL_OPTION } from './service-access.js';
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
  const { api } = serviceOf(cli, options, { timeoutMs: TIMEOUT_MS });
  const { idempotencyKey = randomBytes(16).toString('hex') } = options;
  const operate = api[id] as unknown as (input: object, options: object) => Promise<object | undefined>;
  const answer = await operate(inputOf(fields), { idempotencyKey }).catch((error: unknown) => {
    if (error instanceof TypeError) throw new UsageError(error.message);
    const isChange = OPERATIONS[id].hasIdempotencyKey === true;
    // Whether the change has happened is unknown. With the same key it happens once.
    const repetition = ` To repeat the change safely, add --idempotency-key ${idempotencyKey}.`;
    throw serviceFailure(error, isChange ? repetition : '');
  });
  const result = answer ?? { status: 204 };
  print(cli, options, result, JSON.stringify(result, null, 2));
}

const FIELD = /^([A-Za-z]\w*)(:?)=([^]*)$/;

function inputOf(fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    fields.map((field) => {
      const [, name, isJson, value = ''] = FIELD.exec(field) ?? [];
      if (name === undefined) throw new UsageError(`Give fields as name=value or name:=json, not ${quoted(field)}.`);
      try {
        return [name, isJson === '' ? value : (JSON.parse(value) as unknown)];
      } catch {
        throw new UsageError(`${name}:= needs JSON, not ${quoted(value)}.`);
      }
    }),
  );
}
