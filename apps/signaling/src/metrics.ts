import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';
import { CLIENT_MESSAGES, CLOSE_REASONS, ERROR_CODES, type ClientMessage, type ErrorCode } from '@callplane/protocol';
import type { Ending } from './clients/client.js';

const ARRIVAL_LIMITS = ['participant', 'session', 'address'] as const;
export type ArrivalLimit = (typeof ARRIVAL_LIMITS)[number];

const BATCH_NAMES = ['joins', 'resumptions', 'disconnections', 'ends', 'metadata', 'mutes', 'quality'] as const;
export type BatchName = (typeof BATCH_NAMES)[number];

const READ_REASONS = [
  /** This instance has changed the room, or sends a welcome. */
  'changed',
  /** A notice does not continue the known version, or carries no changes. */
  'gap',
  /** The periodic resync, and the one after an outage of Redis. */
  'poll',
  /** Finds out whether this instance still holds a session, for example after its feed has ended by itself. */
  'check',
] as const;
export type ReadReason = (typeof READ_REASONS)[number];

const CLAIM_OUTCOMES = [
  /** Each half that the other gateway had handed over continues. */
  'continued',
  'partly',
  /** Another gateway held the session in between, or the room's media is elsewhere by now. */
  'outdated',
  'reset',
  /** The media server does not have the session any more, or did not answer. */
  'lost',
] as const;
export type ClaimOutcome = (typeof CLAIM_OUTCOMES)[number];

const BATCH_SIZE_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

export type SignalingMetrics = ReturnType<typeof signalingMetrics>;

/** Registers this instance's counters and histograms. docs/operations/monitoring.md explains how to read them. */
export function signalingMetrics(metrics: Metrics) {
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
    known: [...Object.keys(CLOSE_REASONS), 'lost', 'elsewhere'].map((reason) => ({ reason })),
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
  type Counts = Record<ClientMessage['type'], number>;
  const messages = Object.fromEntries(Object.keys(CLIENT_MESSAGES).map((type) => [type, 0])) as Counts;
  metrics.totals(
    { name: 'callplane_signaling_messages_total', help: 'Valid client messages, by type.', label: 'type' },
    () => messages,
  );
  const refusals = metrics.counter({
    name: 'callplane_signaling_refusals_total',
    help: 'Refused client messages, by code.',
    labels: ['code'],
    known: Object.keys(ERROR_CODES).map((code) => ({ code })),
  });
  const reads = metrics.counter({
    name: 'callplane_signaling_room_reads_total',
    help: 'Rooms read from PostgreSQL, by reason.',
    labels: ['why'],
    known: READ_REASONS.map((why) => ({ why })),
  });
  const whip = metrics.counter({
    name: 'callplane_signaling_whip_requests_total',
    help: 'HTTP requests of encoders (WHIP), by method and status.',
    labels: ['method', 'status'],
    known: [],
  });
  const dropped = metrics.counter({
    name: 'callplane_signaling_parts_dropped_total',
    help: 'Parts of streams that receivers did not get because they read too slowly. Their senders send them again.',
  });
  const streamBytes = metrics.counter({
    name: 'callplane_signaling_stream_bytes_total',
    help: 'Base64 bytes of streams that were passed on, each as often as it has recipients.',
  });
  return {
    partDropped: () => dropped.inc(),
    whipRequest: (method: string, status: number) => whip.inc({ method, status: String(status) }),
    partPassed: (bytes: number) => streamBytes.inc(bytes),
    message: (type: ClientMessage['type']) => {
      messages[type] += 1;
    },
    refused: (code: ErrorCode) => refusals.inc({ code }),
    roomRead: (why: ReadReason) => reads.inc({ why }),
  };
}

function batchMetrics(metrics: Metrics) {
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
    batch: (batch: BatchName, size: number, durationMs: number) => {
      batchSizes.observe({ batch }, size);
      batchDurations.observe({ batch }, durationMs / 1000);
    },
  };
}

export function addSignalingGauges(
  metrics: Metrics,
  held: {
    connections(): number;
    sessions(): number;
    encoders(): number;
    mediaNodes(): readonly { id: string; state: 'up' | 'down' }[];
    forwards(): Record<string, number>;
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
  metrics.gauge(
    { name: 'callplane_signaling_encoders', help: 'Sessions of encoders (WHIP), which have no WebSocket.' },
    () => held.encoders(),
  );
  metrics.gauges(
    {
      name: 'callplane_media_forwards',
      help: 'Feeds that the media server receives from others for sessions of this instance.',
      label: 'node',
    },
    () => held.forwards(),
  );
  metrics.gauges(
    {
      name: 'callplane_media_node_up',
      help: '1 if the media server and its VideoRoom answer this process, else 0.',
      label: 'node',
    },
    () => Object.fromEntries(held.mediaNodes().map(({ id, state }) => [id, state === 'up' ? 1 : 0])),
  );
}
