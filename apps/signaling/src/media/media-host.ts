import type { Permission } from '@callplane/core';
import type { RoomPlacement, TrackState } from '@callplane/db';
import type { MediaNode, MediaSession } from '@callplane/media';
import type { ServerMessage } from '@callplane/protocol';
import type { Logger } from '@callplane/runtime';
import { RequestFailure } from '../connections/request-failure.js';
import type { TrackIndex } from '../rooms/tracks.js';
import type { TrackOrder } from '../rooms/tracks.js';
import type { ClaimOutcome, MediaState } from './handover/media-state.js';

/** The part of a session that its media needs. */
export interface MediaHost {
  readonly sessionId: string;
  readonly participantId: string;
  readonly roomId: string;
  readonly permissions: readonly Permission[];
  /** Number of the session's current connection. It is part of the session's feed ids. */
  readonly connectionNumber: number;
  /** Whether the session has a connection that got its welcome. */
  readonly isConnected: boolean;
  readonly autoSubscribe: boolean;
  /** Protocol version of the session's current connection. */
  /** Audio packets whose average level decides whether a track carries speech; see `PublishOptions`. */
  readonly audioActivePackets: number;
  readonly logger: Logger;
  send(message: ServerMessage): void;
  /** Where the room's media is; null before the first read. */
  placement(): RoomPlacement | null;
  /** The tracks of this session as they are stored. */
  storedTracks(): readonly TrackState[];
  /** The tracks of the room. */
  tracks(): TrackIndex;
  /** The tracks of the room in the order in which they are received. */
  order(): TrackOrder;
  /** The session's own track carries speech from now on, with this level in dBov; null: no longer. */
  speaking(trackId: string, level: number | null): void;
  /** What another instance would need to go on with the session's media has changed. */
  mediaChanged(): void;
  /** The session wants these layers of the video tracks of others from now on, by track key. */
  layersChanged(layers: ReadonlyMap<string, number>): void;
  /** Writes where the session's media is. Returns false if this connection no longer holds the session. */
  writeMedia(): Promise<boolean>;
  /** Counts media that another gateway has handed over, by outcome. */
  claimed(outcome: ClaimOutcome): void;
  /** Writes the tracks that are published from now on, and where the session's media is. Returns false if this connection no longer holds the session. */
  publishTracks(tracks: TrackState[], media: MediaState | null): Promise<boolean>;
  unpublishAll(): Promise<void>;
  setTrackMuted(trackId: string, muted: boolean): Promise<boolean>;
  /** Reads the room again. Returns whether this instance still holds the session afterwards. */
  stillLive(): Promise<boolean>;
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

/** The failure of a client's request that the media server cannot handle. */
export function mediaUnavailable(cause?: unknown): RequestFailure {
  return new RequestFailure('media_unavailable', undefined, undefined, { cause });
}

/** Identifies the place of a room's media. */
export function placeOf(host: Pick<MediaHost, 'placement'>): string {
  return `${host.placement()?.mediaNodeId ?? ''}/${host.placement()?.mediaGeneration ?? 0}`;
}
