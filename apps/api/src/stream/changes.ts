import { streamKindsOf, type EventType, type StreamKind } from '@callplane/core';
import type { EventChange, EventPosition } from '@callplane/db';

/** A change: an event of a room. */
export interface Change {
  kind: StreamKind;
  type: EventType;
  eventId: string;
  roomId: string | null;
  participantId: string | null;
  sequence: number | null;
}

/** What a client wants to know. */
export interface Wanted {
  kinds: ReadonlySet<StreamKind>;
  /** Only changes of this room; null: of all. */
  roomId: string | null;
}

/** The changes that events are for a client. */
export function changesOf(events: readonly EventChange[], { kinds, roomId }: Wanted): Change[] {
  return events.flatMap(({ id, type, roomId: of, participantId, sequence }) =>
    roomId !== null && of !== roomId
      ? []
      : streamKindsOf(type)
          .filter((kind) => kinds.has(kind))
          .map((kind) => ({ kind, type, eventId: id, roomId: of, participantId, sequence })),
  );
}

const POSITION = /^(\d{1,19})\.(evt_[0-9a-z]{26})$/;

/** The `id` of a message: a position among the events of the environment. */
export function formatPosition({ transactionId, id }: EventPosition): string {
  return `${transactionId}.${id}`;
}

/** Null if the text is no position. */
export function parsePosition(text: string): EventPosition | null {
  const [, transactionId, id] = POSITION.exec(text) ?? [];
  if (transactionId === undefined || id === undefined || BigInt(transactionId) >= 2n ** 63n) return null;
  return { transactionId, id, roomId: null, sequence: null };
}
