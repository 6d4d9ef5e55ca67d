import { parseUrl } from '@callplane/core';
import { InvalidArgumentError, type Command } from 'commander';
import type { Cli } from '../cli.js';
import { CommandError, UsageError } from '../failure.js';
import { parseCount } from '../options.js';
import { addCommand, print, tableOf, type OutputOptions } from '../output.js';
import { serviceFailure, serviceOf, URL_OPTION } from '../service-access.js';
import type { Spread } from './figures.js';
import type { LoadReport, LoadSettings } from './run-load.js';

const LOAD_LIMITS = {
  publishers: 20,
  viewers: 1000,
  minutes: 120,
  joinsPerSecond: 100,
  kbps: 5000,
  metrics: 16,
};
/** Above this share of its cores, this machine decides the figures. */
const BUSY_SHARE = 0.8;
/** Each request may be repeated: a limit of the key's rate must not end the run. */
const RETRIES_MAX = 5;
const FAILURES_SHOWN = 3;

interface LoadCommandOptions extends OutputOptions {
  url?: string;
  key?: string;
  publishers: number;
  viewers: number;
  minutes: number;
  joinsPerSecond: number;
  kbps: number;
  room?: string;
  metrics?: string[];
}

/** Adds `rtc load`. It needs an API key and nothing else, so it works from any machine. */
export function addLoadCommand(rtc: Command, cli: Cli): void {
  const description = 'Load your own deployment with a call, and measure what its viewers receive';
  const { publishers, viewers, joinsPerSecond, kbps } = LOAD_LIMITS;
  addCommand(rtc, 'load', description, 'rtc load --publishers 4 --viewers 200 --minutes 5')
    .option(...URL_OPTION)
    .option('--key <key>', 'a secret API key with rooms:create, rooms:end, tokens:create (default: CALLPLANE_API_KEY)')
    .option('--publishers <count>', 'participants with picture and sound', parseCount('a count', 0, publishers), 1)
    .option('--viewers <count>', 'participants that receive them', parseCount('a count', 1, viewers), 10)
    .option('--minutes <minutes>', 'how long to measure after the last join', parseMinutes, 1)
    .option('--joins-per-second <count>', 'pace of the viewers', parseCount('a count', 1, joinsPerSecond), 10)
    .option('--kbps <kbps>', 'bit rate of each picture', parseCount('kbit/s', 50, kbps), 500)
    .option('--room <room>', 'a room that exists, which stays; with --publishers 0, more viewers for it')
    .option('--metrics <urls>', 'comma-separated metrics pages of apps, for their processor time', parseUrls)
    .action((options: LoadCommandOptions) =>
      load(cli, options).catch((error: unknown) => {
        throw serviceFailure(error);
      }),
    );
}

async function load(cli: Cli, options: LoadCommandOptions): Promise<void> {
  const { publishers, viewers, minutes, joinsPerSecond, kbps, room: roomId = null, metrics = [] } = options;
  if (publishers === 0 && roomId === null)
    throw new UsageError('Give at least one publisher, or a --room that has some.');
  const service = serviceOf(cli, options, { retriesMax: RETRIES_MAX });
  const abort = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => abort.abort());
  const { runLoad } = await import('./run-load.js');
  const settings: LoadSettings = {
    publishers,
    viewers,
    seconds: minutes * 60,
    joinsPerSecond,
    kbps,
    roomId,
    metricsUrls: metrics,
  };
  const report = await runLoad(service, settings, (text) => cli.note?.(text), abort.signal);
  print(cli, options, report, textOf(report));
  const without = report.viewers - report.firstPictureMs.count;
  if (report.failures.length > 0 || without > 0) {
    const reasons = [...new Set(report.failures)].slice(0, FAILURES_SHOWN).map((reason) => `: ${reason}`);
    throw new CommandError(
      `${report.failures.length} of ${report.viewers} viewers lost or got no call, ${without} saw no picture${reasons.join('')}.`,
    );
  }
}

function textOf(report: LoadReport): string {
  const { processors, here, seconds, publishers, viewers } = report;
  const rows: [what: string, spread: Spread, unit: string, digits: number][] = [
    ['joined', report.joinedMs, 'ms', 0],
    ['first picture', report.firstPictureMs, 'ms', 0],
    ['picture of every publisher', report.allPicturesMs, 'ms', 0],
    ['received by a viewer', report.kbps, 'kbit/s', 0],
    ['frames of a picture', report.framesPerSecond, '/s', 1],
    ['lost packets', report.lossPercent, '%', 2],
  ];
  const table = tableOf(rows, {
    WHAT: ([what]) => what,
    VIEWERS: ([, { count }]) => count,
    MEDIAN: ([, { median }, unit, digits]) => cell(median, unit, digits),
    '95 %': ([, { p95 }, unit, digits]) => cell(p95, unit, digits),
    WORST: ([, { worst }, unit, digits]) => cell(worst, unit, digits),
  });
  const used = processors.map(({ source, app, percent }) =>
    percent === null
      ? `${source}: no processor time seen`
      : `${app ?? source}: ${percent.toFixed(0)} % of a core (${source})`,
  );
  const own = `this machine: ${here.percent.toFixed(0)} % of a core, of ${here.cores} cores`;
  const isBusy = here.percent > here.cores * 100 * BUSY_SHARE;
  return [
    `${publishers} publishers, ${viewers} viewers, ${seconds.toFixed(0)} s, ${report.reconnections} reconnections`,
    '',
    table,
    '',
    ...used,
    own,
    ...(isBusy ? ['This machine is busy and may decide the figures: give it fewer viewers, and others the rest.'] : []),
  ].join('\n');
}

function cell(value: number | null, unit: string, digits: number): string {
  return value === null ? '' : `${value.toFixed(digits)} ${unit}`;
}

/** Also fractions, for a short try. */
function parseMinutes(text: string): number {
  const minutes = /^\d{1,3}(\.\d{1,3})?$/.test(text) ? Number(text) : NaN;
  if (minutes > 0 && minutes <= LOAD_LIMITS.minutes) return minutes;
  throw new InvalidArgumentError(`Give minutes above 0, and at most ${LOAD_LIMITS.minutes}.`);
}

function parseUrls(text: string): string[] {
  const urls = text.split(',').map((one) => one.trim());
  const isPage = (one: string) => ['http:', 'https:'].includes(parseUrl(one)?.protocol ?? '');
  if (urls.length <= LOAD_LIMITS.metrics && urls.every(isPage)) return urls;
  throw new InvalidArgumentError(`Give at most ${LOAD_LIMITS.metrics} URLs, such as http://127.0.0.1:9464/metrics.`);
}
