import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import {
  classifyStatus,
  DELIVERY_DEADLINE_SECONDS,
  EVENT_TYPES,
  type EventType,
  generateSigningSecret,
  newId,
  parseUrl,
  SIGNATURE_CONTRACT,
  signDelivery,
} from '@callplane/core';
import type { Callplane, EventBatch } from '@callplane/server';
import { type Command, InvalidArgumentError } from 'commander';
import type { Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { parseDuration, parseSome } from './options.js';
import { addCommand, type OutputOptions, print } from './output.js';
import { serviceFailure, serviceOf, URL_OPTION } from './service-access.js';
import { quoted } from './terminal.js';

interface ListenOptions extends OutputOptions {
  forwardTo: URL;
  url?: string;
  key?: string;
  since?: number;
  events?: EventType[];
  secret?: string;
}

type ServiceEvent = EventBatch['events'][number];
type Say = (step: string, text: string, fields: object) => void;

/** The most that the client allows: some hours without the service. */
const FAILURES_MAX = 1000;
const FAILED_SHOWN_MAX = 20;
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

/** Adds `rtc listen`. It needs an API key and nothing else, so it works from any machine. */
export function addListenCommand(rtc: Command, cli: Cli): void {
  const description = 'Forward the events of a running service to a local receiver, signed as webhooks are';
  addCommand(rtc, 'listen', description, 'rtc listen --forward-to http://localhost:3000/hook')
    .requiredOption('--forward-to <url>', 'your receiver', parseReceiver)
    .option(...URL_OPTION)
    .option('--key <key>', 'a secret API key with webhooks:read (default: CALLPLANE_API_KEY)')
    .option('--since <duration>', 'begin with the events of this time, such as 30m (default: now)', parseDuration)
    .option('--events <types>', 'comma-separated event types (default: all)', parseSome('event types', EVENT_TYPES))
    .option('--secret <secret>', 'the signing secret, whsec_… (default: a new one)', parseSecret)
    .action((options: ListenOptions) =>
      listen(cli, options).catch((error: unknown) => {
        throw serviceFailure(error);
      }),
    );
}

async function listen(cli: Cli, options: ListenOptions): Promise<void> {
  const say: Say = (step, text, fields) => print(cli, options, { step, ...fields }, text);
  let isInterrupted = false;
  const { url, api } = serviceOf(cli, options, {
    fetch: async (...request) => {
      const response = await fetch(...request);
      if (isInterrupted && response.ok) say('resumed', `${url} answers again.`, {});
      isInterrupted &&= !response.ok;
      return response;
    },
  });
  const { events: types = [], forwardTo, since, secret = generateSigningSecret(randomBytes(32)) } = options;
  const abort = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => abort.abort());
  // The API filters by one type only. A cursor belongs to its filter, so every request has it.
  const [type] = types;
  const filter = types.length === 1 && type !== undefined ? { type } : {};
  const environmentId = await environmentWithEvents(api, url);
  // Without any event there is no cursor: the first event is a new one.
  let cursor = since === undefined ? (await api.listEvents({ ...filter, after: 'latest' })).nextCursor : null;
  const what = types.length === 0 ? 'All events' : types.join(', ');
  // A secret that the caller gave stays out of logs.
  const isNew = options.secret === undefined;
  const shown = isNew ? `Signing secret: ${secret}\n` : '';
  const ready = `${shown}${what} of ${environmentId} go to ${forwardTo.href}. Press Ctrl-C to end.`;
  say('ready', ready, { environmentId, forwardTo: forwardTo.href, ...(isNew ? { secret } : {}) });
  const { forward, end } = forwarder(cli, { forwardTo, secret, signal: abort.signal }, say);
  await api.consumeEvents({
    ...filter,
    from: since === undefined ? 'earliest' : new Date(cli.clock.now().getTime() - since * 1000),
    signal: abort.signal,
    failuresMax: FAILURES_MAX,
    loadCursor: () => Promise.resolve(cursor),
    handle: async ({ events, nextCursor }) => {
      for (const event of events) {
        if (abort.signal.aborted) return;
        if (types.length === 0 || types.includes(event.type)) await forward(event);
      }
      cursor = nextCursor;
    },
    onFailure: ({ error, failures }) => {
      isInterrupted = true;
      const reason = (error as Error).message;
      if (failures === 1) say('interrupted', `${reason}. Trying again.`, { reason });
    },
  });
  end();
}

/** The environment of the key. @throws CommandError or UsageError if the service or its key cannot be used. */
async function environmentWithEvents(api: Callplane, url: string): Promise<string> {
  const { environmentId, scopes } = await api.readContext();
  // Another service may run at the address.
  if (!Array.isArray(scopes)) throw new CommandError(`${url} answers without the data of a Callplane API.`);
  if (scopes.includes('webhooks:read')) return environmentId;
  throw new UsageError('The API key lacks the scope webhooks:read. Create one with "rtc keys create".');
}

function forwarder(
  cli: Cli,
  { forwardTo, secret, signal }: { forwardTo: URL; secret: string; signal: AbortSignal },
  say: Say,
) {
  const failedEvents: string[] = [];
  let forwarded = 0;
  let failed = 0;
  return {
    forward: async (event: ServiceEvent): Promise<void> => {
      const timestampUnixSeconds = Math.floor(cli.clock.now().getTime() / 1000);
      const deliveryId = newId('delivery');
      const delivery = { deliveryId, body: JSON.stringify(event), secret, timestampUnixSeconds };
      const answer = await sendTo(forwardTo, delivery, signal);
      if (signal.aborted) return;
      forwarded += 1;
      if (!isSuccess(answer)) {
        failed += 1;
        if (failed <= FAILED_SHOWN_MAX) failedEvents.push(event.id);
      }
      say('forwarded', lineOf(cli, event, answer), { id: event.id, type: event.type, deliveryId, ...answer });
    },
    end: (): void => {
      const names = failed === 0 ? '' : `: ${failedEvents.join(', ')}${failed > FAILED_SHOWN_MAX ? ', …' : ''}`;
      say('ended', `${forwarded} events forwarded, ${failed} failed${names}.`, { forwarded, failed, failedEvents });
    },
  };
}

function lineOf(cli: Cli, event: ServiceEvent, answer: Answer): string {
  const result = answer.statusCode === null ? `failed: ${answer.errorCode}` : `HTTP ${answer.statusCode}`;
  const said = isSuccess(answer) || answer.body === '' ? '' : `  ${quoted(answer.body)}`;
  const { id, type } = event;
  return `${cli.clock.now().toISOString()}  ${type}  ${id}  ${result} (${answer.durationMs} ms)${said}`;
}

function isSuccess({ statusCode }: Answer): boolean {
  return statusCode !== null && classifyStatus(statusCode) === 'success';
}

function parseReceiver(text: string): URL {
  const url = parseUrl(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new InvalidArgumentError('Give a URL such as http://localhost:3000/hook.');
  }
  return url;
}

function parseSecret(text: string): string {
  if (!SECRET.test(text)) throw new InvalidArgumentError('Give whsec_ and the base64 of 32 bytes.');
  return text;
}

const BODY_BYTES_MAX = 200;

type LocalDelivery = Omit<Parameters<typeof signDelivery>[0], 'replayCount'>;

interface Answer {
  statusCode: number | null;
  /** Why there was no answer, such as `ECONNREFUSED`. */
  errorCode: string | null;
  durationMs: number;
  body: string;
}

/** Sends one event to the local receiver, with the headers, the signature and the deadline of a real delivery. */
function sendTo(url: URL, delivery: LocalDelivery, signal: AbortSignal): Promise<Answer> {
  const startedAt = performance.now();
  const answer = (fields: Partial<Answer>): Answer => ({
    statusCode: null,
    errorCode: null,
    body: '',
    durationMs: Math.round(performance.now() - startedAt),
    ...fields,
  });
  const deadline = AbortSignal.timeout(DELIVERY_DEADLINE_SECONDS * 1000);
  return new Promise((resolve) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(url, {
      method: 'POST',
      headers: headersOf(delivery),
      // A connection of its own for each event: a receiver that is restarted leaves no dead one behind.
      agent: false,
      signal: AbortSignal.any([signal, deadline]),
    });
    request.once('error', (error: NodeJS.ErrnoException) =>
      resolve(answer({ errorCode: deadline.aborted ? 'TIMEOUT' : (error.code ?? 'FAILED') })),
    );
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const finish = (): void => {
        const body = Buffer.concat(chunks).subarray(0, BODY_BYTES_MAX).toString('utf8');
        resolve(answer({ statusCode: response.statusCode ?? null, body }));
        request.destroy();
      };
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes >= BODY_BYTES_MAX) finish();
      });
      // The status decides, whether or not the body ends, as with a real delivery.
      response.once('end', finish);
      response.once('error', finish);
    });
    request.end(delivery.body);
  });
}

function headersOf({ deliveryId, body, secret, timestampUnixSeconds }: LocalDelivery): Record<string, string | number> {
  const replayCount = 0;
  return {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'Callplane-Webhooks/1',
    [SIGNATURE_CONTRACT.signatureHeader]: signDelivery({ secret, timestampUnixSeconds, deliveryId, replayCount, body }),
    [SIGNATURE_CONTRACT.deliveryIdHeader]: deliveryId,
    [SIGNATURE_CONTRACT.replayCountHeader]: String(replayCount),
    [SIGNATURE_CONTRACT.secretVersionHeader]: '1',
  };
}
