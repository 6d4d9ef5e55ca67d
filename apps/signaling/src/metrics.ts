import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';
import { CLIENT_MESSAGES, CLOSE_REASONS, type ClientMessage } from '@callplane/protocol';
import { ARRIVAL_LIMITS, type ArrivalLimit } from './arrivals/limits.js';
import type { Ending } from './connections/connection.js';
import { CLAIM_OUTCOMES, type ClaimOutcome } from './media/record.js';
import { READ_REASONS, type ReadReason } from './rooms/rooms.js';
import { BATCH_NAMES, type BatchName } from './writes/batch.js';

export interface SignalingMetrics {
  /** Observes the size and the duration of a batch. */
  batch(name: BatchName, size: number, durationMs: number): void;
  /** Counts a join or resumption by the outcome in its log line. */
  join(outcome: string, durationMs: number): void;
  /** Counts a join or resumption that a rate limit refused. */
  limited(limit: ArrivalLimit): void;
  /** Counts media that another gateway has handed over, by outcome. */
  mediaClaim(outcome: ClaimOutcome): void;
  /** Counts an ended connection. */
  ended(ending: Ending): void;
  /** Counts a valid client message before it is handled. */
  message(type: ClientMessage['type']): void;
  /** Counts a room that is read from PostgreSQL. */
  roomRead(why: ReadReason): void;
}

const BATCH_SIZE_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** Registers this instance's counters and histograms. docs/operations/monitoring.md explains how to read them. */
export function signalingMetrics(metrics: Metrics): SignalingMetrics {
  return { ...connectionMetrics(metrics), ...trafficMetrics(metrics), ...batchMetrics(metrics) };
}

function connectionMetrics(metrics: Metrics) {
  const joins = metrics.counter({
    name: 'callplane_signaling_joins_total',
    help: 'Joins and resumptions, by outcome: joined, resumed, or the reason of the failure.',
    labels: ['outcome'],
    known: [{ outcome: 'joined' }, { outcome: 'resumed' }],
  });
  const duration = metrics.histogram({
    name: 'callplane_signaling_join_duration_seconds',
    help: 'Time from the first message of a connection to its welcome, in seconds.',
    buckets: SECONDS_BUCKETS,
  });
  const limited = metrics.counter({
    name: 'callplane_signaling_limited_total',
    help: 'Joins and resumptions refused by a rate limit, by limit.',
    labels: ['limit'],
    known: ARRIVAL_LIMITS.map((limit) => ({ limit })),
  });
  const closes = metrics.counter({
    name: 'callplane_signaling_closes_total',
    help: 'Ended connections, by close reason.',
    labels: ['reason'],
    known: [...Object.keys(CLOSE_REASONS), 'lost', 'moved'].map((reason) => ({ reason })),
  });
  const claims = metrics.counter({
    name: 'callplane_signaling_media_claims_total',
    help: 'Sessions with media that were resumed at another gateway, by the outcome for their media.',
    labels: ['outcome'],
    known: CLAIM_OUTCOMES.map((outcome) => ({ outcome })),
  });
  return {
    join: (outcome: string, durationMs: number) => {
      joins.inc({ outcome });
      if (outcome === 'joined' || outcome === 'resumed') duration.observe(durationMs / 1000);
    },
    mediaClaim: (outcome: ClaimOutcome) => claims.inc({ outcome }),
    limited: (limit: ArrivalLimit) => limited.inc({ limit }),
    ended: (reason: Ending) => closes.inc({ reason }),
  };
}

function trafficMetrics(metrics: Metrics) {
  const messages = zeroOf(CLIENT_MESSAGES);
  metrics.totals(
    { name: 'callplane_signaling_messages_total', help: 'Valid client messages, by type.', label: 'type' },
    () => messages,
  );
  const reads = metrics.counter({
    name: 'callplane_signaling_room_reads_total',
    help: 'Rooms read from PostgreSQL, by reason.',
    labels: ['why'],
    known: READ_REASONS.map((why) => ({ why })),
  });
  return {
    message: (type: ClientMessage['type']) => {
      messages[type] += 1;
    },
    roomRead: (why: ReadReason) => reads.inc({ why }),
  };
}

function batchMetrics(metrics: Metrics): Pick<SignalingMetrics, 'batch'> {
  const batchSizes = metrics.histogram({
    name: 'callplane_signaling_batch_size',
    help: 'Writes in one batch, by kind.',
    labels: ['batch'],
    known: BATCH_NAMES.map((batch) => ({ batch })),
    buckets: BATCH_SIZE_BUCKETS,
  });
  const batchDurations = metrics.histogram({
    name: 'callplane_signaling_batch_duration_seconds',
    help: 'Time of one batch of writes in PostgreSQL, by kind, in seconds.',
    labels: ['batch'],
    known: BATCH_NAMES.map((batch) => ({ batch })),
    buckets: SECONDS_BUCKETS,
  });
  return {
    batch: (batch, size, durationMs) => {
      batchSizes.observe({ batch }, size);
      batchDurations.observe({ batch }, durationMs / 1000);
    },
  };
}

function zeroOf<Key extends string>(keys: Readonly<Record<Key, unknown>>): Record<Key, number> {
  return Object.fromEntries(Object.keys(keys).map((key) => [key, 0])) as Record<Key, number>;
}

/** Registers gauges whose values are read at each scrape. */
export function addSignalingGauges(
  metrics: Metrics,
  held: {
    connections(): number;
    sessions(): number;
    mediaNodes(): readonly { id: string; state: 'up' | 'down' }[];
  },
): void {
  metrics.gauge({ name: 'callplane_signaling_connections', help: 'Open WebSockets.' }, () => held.connections());
  metrics.gauge(
    {
      name: 'callplane_signaling_sessions',
      help: 'Sessions of this instance, including those in their grace period.',
    },
    () => held.sessions(),
  );
  metrics.gauges(
    {
      name: 'callplane_media_node_up',
      help: '1 if this process is connected to the media server, else 0.',
      label: 'node',
    },
    () => Object.fromEntries(held.mediaNodes().map(({ id, state }) => [id, state === 'up' ? 1 : 0])),
  );
}
