import type { Query, QueryClient } from '@tanstack/react-query';
import { refreshQuery } from '../api/refresh.js';
import { nowMs } from '../moving-time.js';

const TICK_MS = 250;
type Input = Parameters<typeof isTouched>[1];

/** A failed read counts, too: otherwise each change would repeat it at once. */
function readAt({ state }: Query): number {
  return Math.max(state.dataUpdatedAt, state.errorUpdatedAt);
}

/** Turns changes into reads. Many changes within the pace of a read cause one read, so a busy room causes no storm. */
export class Refresher {
  /** Hashes of the outdated queries. Bounded by the cache. */
  readonly #outdated = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly client: QueryClient) {}

  onChanges(changes: readonly Change[]): void {
    this.#mark(({ queryKey }) => {
      const [operation, input] = queryKey as [string, Input];
      return changes.some((change) => isTouched(operation, input, change));
    });
  }

  /** The stream has a gap, or has just begun: everything on the page may be outdated. */
  onGap(): void {
    this.#mark(({ queryKey }) => queryKey[0] !== 'readUsage');
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#outdated.clear();
  }

  #mark(matches: (query: Query) => boolean): void {
    for (const query of this.client.getQueryCache().findAll({ predicate: matches }))
      this.#outdated.add(query.queryHash);
    this.#flush();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const hash of this.#outdated) {
      const query = this.client.getQueryCache().get(hash);
      const isDue = query === undefined || nowMs() - readAt(query) >= paceOf(query);
      // A read that runs already may have missed the change: it is followed by another one.
      if (!isDue || query?.state.fetchStatus === 'fetching') continue;
      this.#outdated.delete(hash);
      if (query !== undefined) refreshQuery(this.client, query);
    }
    if (this.#outdated.size > 0) this.#timer = setTimeout(() => this.#flush(), TICK_MS);
  }
}

/** The kinds of changes of the stream: docs/api.md. */
export type Kind = 'rooms' | 'participants' | 'operations';

export interface Change {
  kind: Kind;
  roomId?: string | null;
  participantId?: string | null;
}

/** The reads that each kind of change makes outdated. */
const READS: Record<Kind, readonly string[]> = {
  rooms: ['listRooms', 'readRoom', 'readRoomOperation', 'listEvents', 'listParticipants', 'listTokens'],
  participants: [
    ...['listParticipants', 'readParticipant', 'listRoomSessions', 'listParticipantSessions'],
    ...['readRoom', 'listTokens', 'listEvents', 'readParticipantOperation'],
  ],
  operations: ['readRoomOperation', 'readParticipantOperation'],
};

export function isTouched(operation: string, input: { roomId?: string }, change: Change): boolean {
  if (!READS[change.kind].includes(operation)) return false;
  return input.roomId === undefined || typeof change.roomId !== 'string' || input.roomId === change.roomId;
}

/** The shortest time between two reads of the same thing, in milliseconds. */
const PACE_MS = 1_000;
const LIST_PACE_MS = 2_000;
const paceOf = ({ queryKey }: Query): number => (queryKey[0] === 'listRooms' ? LIST_PACE_MS : PACE_MS);
