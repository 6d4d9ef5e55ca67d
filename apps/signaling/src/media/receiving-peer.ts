import { MediaError, type MediaNode, type MediaSession, type MediaSubscriber } from '@callplane/media';
import { PROTOCOL_LIMITS, type ServerMessages } from '@callplane/protocol';
import { streamName } from '../rooms/tracks.js';
import type { TrackView } from './forwards.js';
import { sectionsWithoutCodec, withFallbackCodec } from './fallback-codec.js';
import type { MediaOwner } from './media-writes.js';
import { toFailure, type MediaPlace } from './places.js';
import { checkAnswer } from './sdp-gate.js';
import { Sections } from './sections.js';
import type { SelectedTrack } from './selection.js';

/** Time for a connected client to answer an offer, in milliseconds. */
const ANSWER_WITHIN_MS = 15_000;
/** Pause before a stream that the media server did not know is requested again, in milliseconds. */
const ABSENT_AGAIN_MS = 1000;

/**
 * The gateway that had the session before may have sent offers that it did not write to PostgreSQL. Each connection has
 * its own range of ids, so an answer to one of those never fits an offer of this gateway.
 */
const OFFERS_PER_CONNECTION = 1_000_000;

type Alignment =
  | { outcome: 'offer'; sdp: string }
  | { outcome: 'aligned' }
  | { outcome: 'again' }
  /** The connection has to be replaced by a new one, because it has too many media sections. */
  | { outcome: 'exhausted' };

export interface ReceivingPeerListener {
  onEnded(peer: ReceivingPeer, error: Error): void;
  /** The next alignment may find something to do: the peer is connected, or another gateway has changed its sections. */
  onDisturbed(): void;
}

/**
 * A subscriber's handle on a media server, from the attempt to attach it until it is given up, with its media sections and
 * the offer that has no answer yet.
 */
export class ReceivingPeer {
  readonly sections = new Sections();
  handle: MediaSubscriber | null = null;
  outstanding: ServerMessages['offer'] | null = null;
  /** Whether the media server has the client's answer to the outstanding offer. */
  isAnswering = false;
  /** Whether the client has got an offer, and so has a peer connection. */
  hasOffer = false;
  /** Whether another gateway may have changed the sections. */
  mustList = false;
  /** Makes the next alignment an ICE restart. */
  mustRestart = false;
  /** Whether ICE and DTLS have been up. */
  #isUp = false;
  #isClosed = false;
  #settle: () => void = () => undefined;
  #answerTimer: NodeJS.Timeout | undefined;
  #absentTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly session: MediaOwner,
    readonly node: MediaNode,
    private readonly listener: ReceivingPeerListener,
  ) {}

  /** Continues with a handle of a claimed session, whose last offer is answered. */
  adopt(session: MediaSession, handleId: number): void {
    this.#take(session.adoptSubscriber(handleId, this.session.roomId));
    this.hasOffer = true;
    this.#isUp = true;
  }

  /**
   * Asks the media server which streams the sections carry.
   * @throws MediaError if the media server does not answer, or the client has an offer to answer that this gateway does not know
   */
  async list(tracks: TrackView): Promise<void> {
    const keys = new Map([...tracks.entries].map(([key, track]) => [streamName(track), key]));
    const [known] = tracks.entries.values();
    this.mustList = false;
    const listed = await this.#attached().listSections(known);
    if (this.sections.take(listed, keys)) return;
    throw new MediaError('closed', 'An offer of another gateway has no answer');
  }

  /**
   * Asks the media server to send the selected tracks: with a switch of sections where that is possible, else with an
   * offer.
   */
  async align(place: MediaPlace, selected: ReadonlyMap<string, SelectedTrack>, tracks: TrackView): Promise<Alignment> {
    if (this.handle === null) await this.#attach(place);
    if (this.mustList) await this.list(tracks);
    const { sections } = this;
    const handle = this.#attached();
    sections.noteEnded((stream) => tracks.hasStream(stream));
    if (this.mustRestart) {
      this.mustRestart = false;
      return { outcome: 'offer', sdp: await handle.restart() };
    }
    const keys = new Map([...selected.values()].map(({ key, stream }) => [streamName(stream), key]));
    const plan = sections.plan(selected);
    if (plan.isExhausted) return { outcome: 'exhausted' };
    let again = false;
    if (plan.switches.length > 0) {
      const { sections: listed, absent, offer } = await handle.switch(plan.switches);
      if (listed !== null) sections.take(listed, keys, offer !== null);
      again = sections.switched(plan.switches, absent);
      // Streams that need an offer get it with the next alignment: now, or after the answer to this one.
      if (offer !== null) return { outcome: 'offer', sdp: offer.sdp };
    }
    const { add, remove } = plan.change;
    if (add.length > 0) {
      const offer = await handle.update({ add, remove });
      if (offer !== null) sections.take(offer.sections, keys, true);
      sections.added(add);
      // The sections of codecs that are no longer selected stay. A new connection has none of them.
      if (offer !== null && offer.sections.length > PROTOCOL_LIMITS.sectionsMax) return { outcome: 'exhausted' };
      if (offer !== null) return { outcome: 'offer', sdp: offer.sdp };
    }
    sections.assign(selected);
    // For new settings the media server asks publishers for key frames. Before the connection is up, the client would not
    // get them, and browsers then make none for 300 ms. Once it is up, the media server asks for them itself.
    const settings = this.#isUp ? sections.settings(selected) : [];
    if (settings.length > 0) {
      await handle.configure(settings);
      sections.configured(settings, selected);
    }
    return { outcome: again ? 'again' : 'aligned' };
  }

  /**
   * Makes the offer outstanding.
   * @returns when the media server has accepted the client's answer, or the peer is closed
   */
  offer(offerId: number, sdp: string): Promise<void> {
    this.outstanding = { type: 'offer', offerId, sdp: withFallbackCodec(sdp) };
    this.hasOffer = true;
    return new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /**
   * Gives the client's answer to the media server.
   * @returns keys of the tracks that the client refuses for the first time
   * @throws RequestFailure if the answer is refused. The client may send another.
   * @throws MediaError if the media server has lost the handle
   */
  async answer(sdp: string): Promise<string[]> {
    const checked = checkAnswer(sdp);
    const withoutCodec = sectionsWithoutCodec(this.outstanding?.sdp ?? '', checked.sdp);
    this.isAnswering = true;
    try {
      await this.#attached().answer(checked.sdp);
    } catch (error) {
      throw error instanceof MediaError && error.code === 'invalid_sdp' ? toFailure(error) : error;
    } finally {
      this.isAnswering = false;
    }
    clearTimeout(this.#answerTimer);
    this.outstanding = null;
    const refused = this.sections.refuse([...checked.refusedMids, ...withoutCodec]);
    this.#settle();
    return refused;
  }

  /** Calls `late` once if the client does not answer in time. */
  expectAnswer(late: (error: Error) => void): void {
    clearTimeout(this.#answerTimer);
    this.#answerTimer = setTimeout(() => late(new Error(`no answer within ${ANSWER_WITHIN_MS} ms`)), ANSWER_WITHIN_MS);
  }

  /** Calls `retry` after a pause if the media server does not have one of the selected tracks. */
  expectAbsent(selected: ReadonlyMap<string, SelectedTrack>, retry: () => void): void {
    clearTimeout(this.#absentTimer);
    if (!this.sections.hasAbsent(selected)) return;
    this.#absentTimer = setTimeout(() => {
      this.sections.retryAbsent();
      retry();
    }, ABSENT_AGAIN_MS);
  }

  /** The client has no connection: it cannot answer, and need not receive anything more. */
  stopTimers(): void {
    clearTimeout(this.#answerTimer);
    clearTimeout(this.#absentTimer);
  }

  /** Asks for key frames of all video that is sent to the client. */
  async refresh(): Promise<void> {
    const sent = this.sections.all.filter(({ kind, stream, paused }) => kind === 'video' && stream !== null && !paused);
    await this.#attached().requestKeyFrames(sent.map(({ mid }) => mid));
  }

  /** Keys of the tracks that the client has refused, as long as they are at the same place on the media server. */
  refusedKeys({ entries }: TrackView): ReadonlySet<string> {
    const refused = [...this.sections.refused].filter(([name, key]) => {
      const track = entries.get(key);
      return track !== undefined && streamName(track) === name;
    });
    return new Set(refused.map(([, key]) => key));
  }

  /** Frees the handle. One that is still being attached is freed then. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.stopTimers();
    this.#settle();
    this.handle?.removeAllListeners();
    await this.handle?.detach();
  }

  async #attach({ node, session }: MediaPlace): Promise<void> {
    const { roomId, sessionId, connectionNumber } = this.session;
    const [own] = await Promise.all([session(), node.ensureRoom(roomId)]);
    const handle = await own.attachSubscriber(roomId, `${sessionId}-${connectionNumber}`);
    if (this.#isClosed) await handle.detach();
    else this.#take(handle);
  }

  #take(handle: MediaSubscriber): void {
    this.handle = handle;
    handle.on('closed', (reason) => this.listener.onEnded(this, new Error(`closed by the media server: ${reason}`)));
    handle.on('connected', () => {
      this.#isUp = true;
      this.listener.onDisturbed();
    });
    handle.on('disturbed', () => {
      this.mustList = true;
      this.listener.onDisturbed();
    });
  }

  /** @throws MediaError if the peer was closed while it was being attached */
  #attached(): MediaSubscriber {
    if (this.handle === null || this.#isClosed) throw new MediaError('closed', 'The peer was given up');
    return this.handle;
  }
}

export function nextOfferId(before: number, { connectionNumber }: Pick<MediaOwner, 'connectionNumber'>): number {
  return Math.max(before, (connectionNumber - 1) * OFFERS_PER_CONNECTION) + 1;
}
