import { randomBytes } from 'node:crypto';
import {
  classifyStatus,
  EVENT_TYPES,
  formatTimestamp,
  generateSigningSecret,
  newId,
  parseUrl,
  type EventType,
} from '@callplane/core';
import { InvalidArgumentError, type Command } from 'commander';
import type { Cli } from '../cli.js';
import { parseDuration } from '../options.js';
import { addCommand, print, type OutputOptions } from '../output.js';
import { serviceAccess, URL_OPTION } from '../service-access.js';
import { quoted } from '../terminal.js';
import { sendTo, type Answer } from './receiver.js';
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
  return `${formatTimestamp(cli.clock.now())}  ${type}  ${id}  ${result} (${answer.durationMs} ms)${said}`;
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
