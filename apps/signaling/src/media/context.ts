import type { Permission } from '@callplane/core';
import type { TrackState } from '@callplane/db';
import { MediaError, type MediaNode, type MediaSession } from '@callplane/media';
import type { ServerMessage } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import { RequestFailure } from '../connections/request-failure.js';
import type { SignalingMetrics } from '../metrics.js';
import type { RoomMember } from '../rooms/changes.js';
import type { Room } from '../rooms/room.js';
import type { Rooms } from '../rooms/rooms.js';
import type { MediaWrites, RecordedSession } from './media-writes.js';
import type { MediaPlaces } from './places.js';

export interface MediaOwner extends RoomMember, RecordedSession {
  readonly room: Room;
  readonly media: RoomMember['media'] & RecordedSession['media'];
  readonly permissions: readonly Permission[];
  /** Whether the session has a connection that got its welcome. */
  readonly isConnected: boolean;
  readonly autoSubscribe: boolean;
  send(message: ServerMessage): void;
}

/** What the media of all sessions of a gateway shares. */
export interface MediaDeps {
  logger: Logger;
  places: MediaPlaces;
  rooms: Pick<Rooms, 'load'>;
  writes: MediaWrites;
  metrics: Pick<SignalingMetrics, 'mediaClaim'>;
}

/** The room's current media server and the generation of the placement. */
export interface MediaPlace {
  readonly node: MediaNode;
  readonly generation: number;
  /**
   * The session's own session on the media server, which holds both peer connections. The first call opens it.
   * @throws MediaError
   */
  session(): Promise<MediaSession>;
}

export function storedTracks({ room, participantId, sessionId }: MediaOwner): readonly TrackState[] {
  const own = room.sessionOf(participantId);
  return own?.sessionId === sessionId ? own.tracks : [];
}

/** Reads the room again. Returns whether this gateway still holds the session afterwards. */
export async function isStillLive({ rooms }: MediaDeps, session: MediaOwner): Promise<boolean> {
  await rooms.load(session.roomId);
  return !session.isGone && session.room.departureOf(session) === null;
}

/** The failure of a client's request that the media server cannot handle. */
export function mediaUnavailable(cause?: unknown): RequestFailure {
  return new RequestFailure('media_unavailable', undefined, undefined, { cause });
}

/** The failure of a client's request for an error of the media server; any other error stays as it is. */
export function toFailure(error: unknown): unknown {
  if (!(error instanceof MediaError)) return error;
  if (error.code === 'invalid_sdp') {
    return new RequestFailure('invalid_sdp', 'The media server refused the session description.', undefined, {
      cause: error,
    });
  }
  if (error.code === 'closed') return new RequestFailure('conflict', undefined, undefined, { cause: error });
  return mediaUnavailable(error);
}
