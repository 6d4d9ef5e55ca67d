import type { Clock } from '@callplane/core';
import type { MetadataChange } from '@callplane/db';
import type { ClientMessages } from '@callplane/protocol';
import type { Connection } from '../connections/connection.js';
import type { Rooms } from '../rooms/rooms.js';
import type { Qualities } from '../sessions/qualities.js';
import type { RoomWrites } from '../sessions/room-writes.js';
import type { Session } from '../sessions/session.js';
import type { WelcomeDeps } from '../sessions/welcome.js';

export type RequestType = Exclude<keyof ClientMessages, 'join' | 'resume'>;

/** What the requests of a session need. */
export interface RequestDeps extends WelcomeDeps {
  clock: Clock;
  metadataWrites: RoomWrites<MetadataChange>;
  qualities: Qualities;
  rooms: Rooms;
}

export interface RequestContext {
  deps: RequestDeps;
  connection: Connection;
  session: Session;
}

/**
 * Carries out a client's request within its session, and answers it. The next request waits for a promise.
 * @throws RequestFailure if the request is refused; the connection stays open
 */
export type Handler<T extends RequestType> = (
  context: RequestContext,
  message: ClientMessages[T],
) => void | Promise<void>;
