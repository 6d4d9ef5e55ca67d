import type { SimSocket } from './ports/sockets.js';

export interface Person {
  participantId?: string;
  token?: string;
  sessionId?: string;
  resumeSecret?: string;
  /** The open connection whose welcome has come. */
  socket?: SimSocket;
  /** It does not resume by itself after it has lost its connection. */
  staysAway?: boolean;
  /** When the removal was accepted. */
  removedAtMs?: number;
}

/** What clients know of a room. */
export interface KnownRoom {
  readonly name: string;
  readonly tenant: number;
  /** Ids of all answers 201. */
  readonly ids: string[];
  /** How many creations without a key, or with a key of their own, were sent. */
  creations: number;
  endAcceptedAtMs?: number;
  readonly people: Map<number, Person>;
}

export interface Joined {
  readonly roomId: string;
  readonly participantId: string;
  readonly sentAtMs: number;
  /** `joined`, or the reason of the refusal. */
  readonly outcome: string;
}
