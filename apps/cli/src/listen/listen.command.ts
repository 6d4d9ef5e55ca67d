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
import { type Command, InvalidArgumentError } from 'commander';
import type { Cli } from '../cli.js';
import { parseDuration } from '../options.js';
import { addCommand, type OutputOptions, print } from '../output.js';
import { serviceAccess, URL_OPTION } from '../service-access.js';
import { quoted } from '../terminal.js';
import { EventSource, type ServiceEvent, type Start } from './service.js';

interface ListenOptions extends OutputOptions {
  forwardTo: URL;
  url?: string;
  key?: string;
  since?: number;
  events?: EventType[];
  secret?: string;
}

/** Failed events that the last line names. */
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
    .option('--events <types>', 'comma-separated event types (default: all)', parseTypes)
    .option('--secret <secret>', 'the signing secret, whsec_… (default: a new one)', parseSecret)
    .action((options: ListenOptions) => listen(cli, options));
}

async function listen(cli: Cli, options: ListenOptions): Promise<void> {
  const { url, key } = serviceAccess(cli, options);
  const secret = options.secret ?? generateSigningSecret(randomBytes(32));
  const start: Start =
    options.since === undefined ? 'latest' : new Date(cli.clock.now().getTime() - options.since * 1000);
  const types = options.events ?? [];
  const say = (step: string, text: string, fields: object): void => print(cli, options, { step, ...fields }, text);
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  const source = new EventSource({
    url,
    key,
    types,
    signal: abort.signal,
    onInterrupted: (reason) => say('interrupted', `${url} does not answer (${reason}). Trying again.`, { reason }),
    onResumed: () => say('resumed', `${url} answers again.`, {}),
  });
  const { environmentId } = await source.open(start);
  const forwardTo = options.forwardTo.href;
  const what = types.length === 0 ? 'All events' : types.join(', ');
  // A secret that the caller gave stays out of logs.
  const isNew = options.secret === undefined;
  const shown = isNew ? `Signing secret: ${secret}\n` : '';
  const ready = `${shown}${what} of ${environmentId} go to ${forwardTo}. Press Ctrl-C to end.`;
  say('ready', ready, { environmentId, forwardTo, ...(isNew ? { secret } : {}) });
  const failures: string[] = [];
  let failed = 0;
  let count = 0;
  for await (const event of source.events(start)) {
    const timestampUnixSeconds = Math.floor(cli.clock.now().getTime() / 1000);
    const delivery = { deliveryId: newId('delivery'), body: JSON.stringify(event), secret, timestampUnixSeconds };
    const answer = await sendTo(options.forwardTo, delivery, abort.signal);
    if (abort.signal.aborted) break;
    count += 1;
    if (!isSuccess(answer)) {
      failed += 1;
      if (failures.length < FAILED_SHOWN_MAX) failures.push(event.id);
    }
    say('forwarded', lineOf(cli, event, answer), {
      id: event.id,
      type: event.type,
      deliveryId: delivery.deliveryId,
      ...answer,
    });
  }
  const names = failures.length === 0 ? '' : `: ${failures.join(', ')}${failed > failures.length ? ', …' : ''}`;
  say('ended', `${count} events forwarded, ${failed} failed${names}.`, {
    forwarded: count,
    failed,
    failedEvents: failures,
  });
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

function parseTypes(text: string): EventType[] {
  const given = text.split(',').map((type) => type.trim());
  const known: readonly string[] = EVENT_TYPES;
  if (!given.every((type) => known.includes(type))) {
    throw new InvalidArgumentError(`Give comma-separated event types out of ${EVENT_TYPES.join(', ')}.`);
  }
  return EVENT_TYPES.filter((type) => given.includes(type));
}

function parseSecret(text: string): string {
  if (!SECRET.test(text)) throw new InvalidArgumentError('Give whsec_ and the base64 of 32 bytes.');
  return text;
}

/** Bytes of an answer that are read and shown. */
const BODY_BYTES_MAX = 200;

interface LocalDelivery {
  deliveryId: string;
  body: string;
  secret: string;
  timestampUnixSeconds: number;
}

interface Answer {
  /** Null if the receiver did not answer. */
  statusCode: number | null;
  /** Why there was no answer, such as `ECONNREFUSED`. */
  errorCode: string | null;
  durationMs: number;
  /** The first bytes of the answer, as text. */
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
