import { callAll } from './emitter.js';
import type { CallEncryption } from './encryption/options.js';
import { kept } from './kept.js';
import type { TrackFailure } from './local/create-tracks.js';
import type { PublishedTrack } from './local/local-track.js';
import type { Room } from './metadata.js';
import type { QualityLevel, RemoteParticipant, TrackSource } from './protocol.generated.js';
import type { Participant } from './remote/participant.js';
import type { CloseInfo } from './signaling/close-info.js';
import type { ConnectionState } from './signaling/session.js';

/**
 * A call at one moment. Nothing in it changes: a change makes a new snapshot, in which every part that is unchanged is
 * the same object as before.
 */
export interface CallSnapshot {
  /** Grows with each change. */
  readonly version: number;
  /** `waiting`: you are in the lobby. Then there are no others, no permissions, and of the room only its name. */
  readonly state: ConnectionState;
  /** Why the call is over; undefined while it lasts. */
  readonly closeInfo: CloseInfo | undefined;
  readonly sessionId: string | undefined;
  /**
   * The room as the REST API returns it: its name, metadata, capacity and recordings as of now, the rest as of the latest
   * connection.
   */
  readonly room: Room | undefined;
  /** Since when the room is recorded, in ISO 8601; null while it is not. Show it to everyone in the room. */
  readonly recordingSince: string | null;
  /** Your own participant. */
  readonly participant: RemoteParticipant | undefined;
  /** Your permissions, such as `audio:publish`. */
  readonly permissions: readonly string[];
  /** `down` while no media server is available. Everything else works, and media comes back by itself. */
  readonly mediaState: 'up' | 'down';
  /** How well you send and receive; undefined until media has flowed. */
  readonly connectionQuality: QualityLevel | undefined;
  /** The other participants, by participant id; in a paged room those that are shown. */
  readonly participants: ReadonlyMap<string, Participant>;
  /** Those who speak at this moment, the loudest first. */
  readonly activeSpeakers: readonly Participant[];
  /** Everyone in the room, you included, unless you are in the lobby. */
  readonly participantCount: number;
  /** Those who neither publish nor have metadata. */
  readonly viewerCount: number;
  /** Whether the room is so large that viewers are only counted, and the others are listed in pages. */
  readonly isRosterPaged: boolean;
  /** Your published tracks, by track id. */
  readonly tracks: ReadonlyMap<string, PublishedTrack>;
  /** Your sources that are being published, muted, unmuted or switched. */
  readonly pending: readonly TrackSource[];
  /** Why your sources could not be published, muted, unmuted or switched; each until its next attempt. */
  readonly failures: readonly TrackFailure[];
  /** The key of an encrypted call; undefined if the call is not encrypted. */
  readonly encryption: CallEncryption | undefined;
  /** Whether the browser blocks sound until `startAudio()` is called in a click handler. */
  readonly isAudioBlocked: boolean;
}

/** A call before its first connection, also for pages that have none, or are rendered on a server. */
export const INITIAL_SNAPSHOT: CallSnapshot = {
  version: 0,
  state: 'connecting',
  closeInfo: undefined,
  sessionId: undefined,
  room: undefined,
  recordingSince: null,
  participant: undefined,
  permissions: [],
  mediaState: 'down',
  connectionQuality: undefined,
  participants: new Map(),
  activeSpeakers: [],
  participantCount: 0,
  viewerCount: 0,
  isRosterPaged: false,
  tracks: new Map(),
  pending: [],
  failures: [],
  encryption: undefined,
  isAudioBlocked: false,
};

/** Keeps the present snapshot of a call, and calls listeners once per burst of changes. */
export class Snapshots {
  readonly #listeners = new Set<() => void>();
  #current = INITIAL_SNAPSHOT;
  #isStale = false;
  /** The snapshot that the listeners know; undefined while none of them waits for a change. */
  #notified: CallSnapshot | undefined;

  /** @param read collects the parts of the call */
  constructor(private readonly read: () => Omit<CallSnapshot, 'version'>) {}

  get(): CallSnapshot {
    if (!this.#isStale) return this.#current;
    this.#isStale = false;
    const before = this.#current;
    const read = this.read();
    const { activeSpeakers, tracks, pending, failures } = read;
    const now = kept(before, {
      version: before.version,
      ...read,
      activeSpeakers: kept(before.activeSpeakers, activeSpeakers),
      tracks: kept(before.tracks, tracks),
      pending: kept(before.pending, pending),
      failures: kept(before.failures, failures),
    });
    if (now !== before) this.#current = { ...now, version: before.version + 1 };
    return this.#current;
  }

  /** @returns a function that ends the subscription */
  subscribe(listener: () => void): () => void {
    // A function of its own for each call: the same listener may subscribe twice.
    const own = () => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Something may have changed. */
  changed(): void {
    if (this.#notified === undefined && this.#listeners.size > 0) {
      this.#notified = this.#current;
      queueMicrotask(() => {
        const notified = this.#notified;
        this.#notified = undefined;
        if (this.get() !== notified) callAll([...this.#listeners], undefined);
      });
    }
    this.#isStale = true;
  }
}
