import { SECONDS_BUCKETS, type Metrics } from '@callplane/runtime';
import { CLIENT_MESSAGES, CLOSE_REASONS, type ClientMessage } from '@callplane/protocol';
import type { Ending } from './connections/connection.js';

export interface SignalingMetrics {
  /** A join or a resumption, as its log line says it. */
  join(outcome: string, durationMs: number): void;
  /** A connection came to its end. */
  ended(ending: Ending): void;
  /** A message of a client that was read and is carried out. */
  message(type: ClientMessage['type']): void;
}

/** What this instance counts; docs/operations.md says what to make of it. */
export function signalingMetrics(metrics: Metrics): SignalingMetrics {
  const joins = metrics.counter({
    name: 'callplane_signaling_joins_total',
    help: 'Joins and resumptions, by outcome: joined, resumed, or why not.',
    labels: ['outcome'],
    known: [{ outcome: 'joined' }, { outcome: 'resumed' }],
  });
  const duration = metrics.histogram({
    name: 'callplane_signaling_join_duration_seconds',
    help: 'From the first message of a connection to its welcome.',
    buckets: SECONDS_BUCKETS,
  });
  const closes = metrics.counter({
    name: 'callplane_signaling_closes_total',
    help: 'Connections that came to their end, by close reason.',
    labels: ['reason'],
    known: [...Object.keys(CLOSE_REASONS), 'lost', 'moved'].map((reason) => ({ reason })),
  });
  const messages = metrics.counter({
    name: 'callplane_signaling_messages_total',
    help: 'Messages of clients, by type.',
    labels: ['type'],
    known: Object.keys(CLIENT_MESSAGES).map((type) => ({ type })),
  });
  return {
    join: (outcome, durationMs) => {
      joins.inc({ outcome });
      if (outcome === 'joined' || outcome === 'resumed') duration.observe(durationMs / 1000);
    },
    ended: (reason) => closes.inc({ reason }),
    message: (type) => messages.inc({ type }),
  };
}

/** What this instance holds at the moment of a scrape. */
export function addSignalingGauges(
  metrics: Metrics,
  held: { connections(): number; sessions(): number; mediaNodes(): readonly { id: string; state: 'up' | 'down' }[] },
): void {
  metrics.gauge({ name: 'callplane_signaling_connections', help: 'Open WebSockets.' }, () => held.connections());
  metrics.gauge(
    {
      name: 'callplane_signaling_sessions',
      help: 'Sessions that this instance holds, those within their grace included.',
    },
    () => held.sessions(),
  );
  metrics.gauges(
    { name: 'callplane_media_node_up', help: 'Whether this process reaches a media server.', label: 'node' },
    () => Object.fromEntries(held.mediaNodes().map(({ id, state }) => [id, state === 'up' ? 1 : 0])),
  );
}
