import {
  attemptPhases,
  diagnoseAttempt,
  diagnoseDelivery,
  shownRequestHeaders,
  type AttemptPhase,
  type Diagnosis,
} from '@callplane/core';
import { findDeliveryById, findDeliveryDetail, type AttemptRow } from '@callplane/db';
import { withDatabase, type Cli } from './cli.js';
import { notFound } from './options.js';
import { print, tableOf, type Columns, type OutputOptions } from './output.js';
import { align, quoted } from './terminal.js';

/** More attempts than two runs can have. */
const ATTEMPTS_SHOWN = 20;
const BAR_WIDTH = 40;

/** Shows a delivery: its state, why it failed, its latest attempts, and the phases and headers of the last one. */
export function showDelivery(cli: Cli, options: OutputOptions, deliveryId: string): Promise<void> {
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
