import {
  attemptPhases,
  diagnoseAttempt,
  diagnoseDelivery,
  shownRequestHeaders,
  type AttemptPhase,
  type Diagnosis,
  DELIVERY_STATUSES,
} from '@callplane/core';
import {
  findDeliveryById,
  findDeliveryDetail,
  type AttemptRow,
  listAllDeliveries,
  type DeliveryListing,
} from '@callplane/db';
import { Command } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { notFound, DELIVERY_FILTERS, oneOf } from './options.js';
import { print, tableOf, type Columns, type OutputOptions, addCommand, addList } from './output.js';
import { align, quoted } from './terminal.js';
import {
  deliveryFilterOf,
  replayDeliveries,
  retryDeliveries,
  type DeliveryOptions,
  type SendAgainOptions,
} from './send-again.js';

export function deliveriesCommands(cli: Cli): Command {
  const deliveries = new Command('deliveries').description('Webhook deliveries');
  addList(deliveries, cli, {
    description: 'List deliveries, newest first',
    example: 'rtc deliveries list --status failed --reason rejected --since 2h',
    filters: [...DELIVERY_FILTERS, oneOf('--status <status>', DELIVERY_STATUSES)],
    rows: ({ prisma }, options: DeliveryOptions) => listAllDeliveries(prisma, deliveryFilterOf(cli, options)),
    columns: {
      DELIVERY: (row) => row.id,
      STATUS: (row) => (row.failureReason === null ? row.status : `${row.status} (${row.failureReason})`),
      EVENT: (row) => row.eventType,
      ENDPOINT: (row) => row.endpointId,
      ROOM: (row) => row.roomId,
      ANSWER: (row) => (row.lastStatusCode === null ? (row.lastErrorCode ?? '') : `HTTP ${row.lastStatusCode}`),
      ATTEMPTS: (row) => row.attempts,
      REPLAYS: (row) => row.replayCount,
      WHEN: whenOf,
    },
  });
  const showDescription = 'Show a delivery, its latest attempts, and where the time of the last one went';
  addCommand(deliveries, 'show <delivery>', showDescription, 'rtc deliveries show dlv_01…').action(
    (deliveryId: string, options: OutputOptions) => showDelivery(cli, options, deliveryId),
  );
  const replayDescription = 'Replay a finished delivery, or all that the filters select: new runs to the current URL';
  const replayExample = 'rtc deliveries replay --endpoint whep_01… --reason rejected --since 2h --yes';
  const replay = addCommand(deliveries, 'replay [delivery]', replayDescription, replayExample)
    .addOption(oneOf('--status <status>', ['succeeded', 'failed'], 'filter by this value (default: failed)'))
    .option('--yes', 'replay all deliveries that the filters select')
    .action((deliveryId: string | undefined, options: SendAgainOptions) => replayDeliveries(cli, options, deliveryId));
  const retryDescription = 'Try a pending delivery now, or all that the filters select: same runs, same attempts';
  const retryExample = 'rtc deliveries retry --endpoint whep_01… --yes';
  const retry = addCommand(deliveries, 'retry [delivery]', retryDescription, retryExample)
    .option('--yes', 'try all deliveries that the filters select')
    .action((deliveryId: string | undefined, options: SendAgainOptions) => retryDeliveries(cli, options, deliveryId));
  for (const filter of DELIVERY_FILTERS) for (const command of [replay, retry]) command.addOption(filter);
  return deliveries;
}

const whenOf = (row: DeliveryListing): string =>
  row.completedAt === null ? `due ${row.dueAt.toISOString()}` : `done ${row.completedAt.toISOString()}`;

/** More attempts than two runs can have. */
const ATTEMPTS_SHOWN = 20;
const BAR_WIDTH = 40;

/** Shows a delivery: its state, why it failed, its latest attempts, and the phases and headers of the last one. */
function showDelivery(cli: Cli, options: OutputOptions, deliveryId: string): Promise<void> {
  return withDatabase(cli, async ({ prisma, sql }) => {
    const listing = await findDeliveryById(prisma, deliveryId);
    const detail = listing && (await findDeliveryDetail(sql, listing, listing.endpointId, deliveryId, ATTEMPTS_SHOWN));
    if (detail === null) throw notFound('Delivery', deliveryId, 'deliveries list');
    const { delivery, attempts } = detail;
    const shown = attempts.map((attempt) => describe(attempt, delivery.eventId));
    const [last] = shown;
    const diagnosis =
      diagnoseDelivery(delivery.failureReason, delivery.attempts, last ?? null) ??
      (delivery.status === 'succeeded' ? null : (last?.diagnosis ?? null));
    const facts = [
      ['delivery', deliveryId],
      ['event', `${delivery.eventType} ${delivery.eventId}`],
      ...(delivery.roomId === null ? [] : [['room', delivery.roomId]]),
      ['endpoint', `${delivery.endpointId} ${quoted(delivery.url)}`],
      ['status', delivery.failureReason === null ? delivery.status : `${delivery.status}: ${delivery.failureReason}`],
      ...(diagnosis === null ? [] : diagnosisFacts(diagnosis)),
      ['replays', String(delivery.replayCount)],
      ['attempts', `${delivery.attempts} of this run`],
      ...(delivery.nextAttemptAt === null ? [] : [['next', delivery.nextAttemptAt.toISOString()]]),
    ];
    const text = [
      align(facts),
      ...(attempts.length === 0 ? [] : ['', tableOf(attempts, ATTEMPT_COLUMNS)]),
      ...(last === undefined ? [] : lastAttemptLines(last)),
    ];
    print(cli, options, { ...listing, ...delivery, diagnosis, recentAttempts: shown }, text.join('\n'));
  });
}

type ShownAttempt = ReturnType<typeof describe>;

/** Adds the fields of an attempt that the API shows beside its row. */
function describe({ exchange, ...attempt }: AttemptRow, eventId: string) {
  const earlierAddresses = exchange?.earlierAddresses ?? [];
  return {
    ...attempt,
    responseHeaders: exchange?.responseHeaders ?? null,
    requestHeaders: exchange?.request ? shownRequestHeaders(exchange.request, { ...attempt, eventId }) : null,
    earlierAddresses,
    phases: attemptPhases({ ...attempt, earlierAddresses }),
    diagnosis: diagnoseAttempt(attempt),
  };
}

const diagnosisFacts = ({ summary, advice }: Diagnosis): string[][] => [
  ['why', summary],
  ['do', advice],
];

function lastAttemptLines({ phases, requestHeaders, responseHeaders, durationMs }: ShownAttempt): string[] {
  return [
    ...(phases.length === 0
      ? []
      : ['', 'Time of the last attempt:', align(phases.map((each) => bar(each, durationMs)))]),
    ...headerLines('Headers of the request, with cut signatures:', requestHeaders),
    ...headerLines('Headers of the answer:', responseHeaders),
  ];
}

/** A line of the waterfall: phase, duration, and a bar at the place of the phase in the attempt. */
function bar({ phase, startMs, durationMs, failed }: AttemptPhase, wholeMs: number): string[] {
  const columnOf = (ms: number): number => Math.round((ms / Math.max(1, wholeMs)) * BAR_WIDTH);
  const begin = Math.min(columnOf(startMs), BAR_WIDTH - 1);
  const length = Math.max(1, columnOf(startMs + durationMs) - begin);
  const name = phase.replaceAll('_', ' ');
  return [`  ${name}`, `${durationMs} ms`, `${' '.repeat(begin)}${'#'.repeat(length)}${failed ? ' failed' : ''}`];
}

function headerLines(title: string, headers: Record<string, string> | null): string[] {
  if (headers === null) return [];
  return ['', title, ...Object.entries(headers).map(([name, value]) => `  ${name}: ${value}`)];
}

const ATTEMPT_COLUMNS: Columns<AttemptRow> = {
  ATTEMPT: (row) => `${row.replayCount}.${row.attempt}`,
  STARTED: (row) => row.startedAt,
  OUTCOME: (row) => row.outcome,
  RESULT: (row) => (row.statusCode === null ? (row.errorCode ?? '') : `HTTP ${row.statusCode}`),
  TOOK: (row) => `${row.durationMs} ms`,
  ADDRESS: (row) => row.address,
  RESPONSE: (row) =>
    row.responseBody === null || row.responseBody === '' ? '' : quoted(row.responseBody.slice(0, 80)),
};
