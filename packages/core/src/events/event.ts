import type { Scope } from '../api-keys/api-key.js';
import type { EventType } from './event-types.js';

/** The kinds of changes of a stream, with the scope that each needs. */
export const STREAM_KINDS = {
  rooms: 'rooms:read',
  participants: 'participants:read',
  operations: 'rooms:read',
} as const satisfies Record<string, Scope>;

export type StreamKind = keyof typeof STREAM_KINDS;
export const STREAM_KIND_NAMES = Object.keys(STREAM_KINDS) as readonly StreamKind[];

/** The kinds of an event. Events of webhooks have none. */
export function streamKindsOf(type: EventType): readonly StreamKind[] {
  if (type === 'operation.failed') return ['operations'];
  // With these, the operations that end a room or remove a participant are complete.
  if (type === 'room.ended') return ['rooms', 'operations'];
  if (type === 'participant.left') return ['participants', 'operations'];
  // A room says whether it is recorded.
  if (type.startsWith('room.') || type.startsWith('recording.')) return ['rooms'];
  return type.startsWith('participant.') || type.startsWith('track.') ? ['participants'] : [];
}

/** Streams of one environment, and of all, at one API process. */
export const STREAMS_PER_ENVIRONMENT_MAX = 50;
export const STREAMS_MAX = 500;
/** How often a stream without changes sends something, in milliseconds: below the time-outs of balancers. */
export const STREAM_HEARTBEAT_MS = 15_000;
/** How long a stream lasts at most, in milliseconds, so that balancers can drain. The client connects again. */
export const STREAM_AGE_MS_MAX = 15 * 60_000;
export const STREAM_UNREAD_BYTES_MAX = 256 * 1024;
/** Events that a stream sends a client that connects again. */
export const STREAM_BACKLOG_MAX = 500;
/** How old the position of such a client may be, in milliseconds. */
export const STREAM_POSITION_AGE_MS_MAX = 24 * 3_600_000;
