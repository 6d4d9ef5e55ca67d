import { LAYERS_REPEATED_MS, LayerWants, type ReportedLayers } from './layer-wants.js';
import type { RoomMember } from './members.js';
import type { OtherInstances } from './other-instances.js';
import { SentLayers } from './sent-layers.js';
import { trackKey, type IndexedTrack, type TrackIndex } from './track-index.js';

/** The shortest pause between two reports to other gateways, and between two messages to a publisher. */
const FLUSH_EVERY_MS = 100;

export interface RoomLayersPort {
  isHeldElsewhere(participantId: string): boolean;
  /** Reports to the other gateways of the room. */
  report(layers: ReportedLayers): void;
}

/**
 * Collects which layers the members of a room receive, and tells the publishers of this gateway how much of their video
 * is received (docs/decisions/0058-the-call-path.md).
 */
export class RoomLayers {
  readonly #index: TrackIndex;
  readonly #others: OtherInstances;
  readonly #port: RoomLayersPort;
  readonly #wants = new LayerWants();
  /** The members by session, with what they were told as publishers. */
  readonly #members = new Map<string, { member: RoomMember; sent: SentLayers }>();
  #timer: NodeJS.Timeout | undefined;
  #flushedMs = -Infinity;
  #reportedMs = -Infinity;
  #reported = '';
  #isClosed = false;

  constructor(index: TrackIndex, others: OtherInstances, port: RoomLayersPort) {
    this.#index = index;
    this.#others = others;
    this.#port = port;
  }

  /** A session of this gateway receives these layers of video tracks from now on. */
  note(sessionId: string, layers: ReadonlyMap<string, number>): void {
    if (this.#isClosed) return;
    this.#wants.note(sessionId, layers);
    this.#flushLater();
  }

  receive(gateway: string, layers: ReportedLayers): void {
    this.#wants.receive(gateway, layers, performance.now());
    this.#flushLater();
  }

  /** The member has got its welcome, and may have missed what it was told. */
  add(member: RoomMember): void {
    const sent = this.#members.get(member.sessionId)?.sent ?? new SentLayers();
    this.#members.set(member.sessionId, { member, sent });
    sent.repeat();
    this.#flushLater();
  }

  remove(member: RoomMember): void {
    const known = this.#members.get(member.sessionId)?.member ?? member;
    if (known !== member) return;
    this.#members.delete(member.sessionId);
    this.#wants.forget(member.sessionId);
    this.#flushLater();
  }

  /** Tracks were published, moved, muted or unmuted. */
  onTracks(): void {
    this.#flushLater();
  }

  /** Repeats the report to other gateways, and turns off what is no longer wanted. */
  eachSecond(): void {
    this.#wants.keep(new Set(this.#others.ids));
    // Finds reports that have become too old, too.
    this.#flushLater();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #flushLater(): void {
    if (this.#isClosed || !this.#index.hasVideo) return;
    const waitMs = Math.max(0, this.#flushedMs + FLUSH_EVERY_MS - performance.now());
    this.#timer ??= setTimeout(() => this.#flush(), waitMs);
  }

  #flush(): void {
    this.#timer = undefined;
    this.#flushedMs = performance.now();
    this.#report();
    for (const sessionId of this.#index.publishers.all) this.#tell(sessionId);
  }

  #report(): void {
    if (!this.#others.areThere) return;
    const layers = this.#wants.report((key) => this.#port.isHeldElsewhere(key.slice(0, key.indexOf('/'))));
    const text = JSON.stringify(layers);
    if (text === this.#reported && this.#flushedMs - this.#reportedMs < LAYERS_REPEATED_MS) return;
    this.#reported = text;
    this.#reportedMs = this.#flushedMs;
    this.#port.report(layers);
  }

  #tell(sessionId: string): void {
    const { member, sent } = this.#members.get(sessionId) ?? {};
    if (member === undefined || sent === undefined) return;
    const own = this.#index.of(member.participantId).filter(({ kind }) => kind === 'video');
    const wantedOf = (track: IndexedTrack): number | null =>
      this.#index.isMuted(track)
        ? null
        : this.#wants.wanted(trackKey(track.participantId, track.trackId), this.#others.ids, this.#flushedMs);
    const tracks = sent.settle(own, wantedOf, this.#flushedMs);
    if (tracks !== null) member.sendText(JSON.stringify({ type: 'layersWanted', tracks }));
  }
}
