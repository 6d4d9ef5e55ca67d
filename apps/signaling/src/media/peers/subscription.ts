import {
  MediaError,
  type MediaNode,
  type MediaSession,
  type MediaSubscriber,
  type StreamReference,
} from '@callplane/media';
import { PROTOCOL_LIMITS, type ServerMessages } from '@callplane/protocol';
import { RequestFailure } from '../../connections/request-failure.js';
import type { TrackIndex } from '../../rooms/tracks.js';
import type { SubscriberState } from '../handover/media-state.js';
import type { MediaHost, MediaPlace } from '../media-host.js';
import { checkAnswer } from '../sdp/sdp-gate.js';
import { Sections } from '../tracks/sections.js';
import type { Want } from '../tracks/select-tracks.js';
import { StreamNotes } from '../tracks/stream-notes.js';
import { HeldCandidates } from './candidates.js';

/** The result of an attempt to align the sections with the wanted tracks. */
export type Alignment =
  /** The client has to answer this offer. */
  | { outcome: 'offer'; sdp: string }
  /** Nothing is left to do, or (`again`) another attempt goes on. */
  | { outcome: 'aligned'; again: boolean }
  /** The connection has to be replaced by a new one, because it has too many media sections. */
  | { outcome: 'exhausted' };

type SubscriptionHost = Pick<MediaHost, 'send' | 'writeMedia'>;

/** A handle of a subscriber on a media server, with its media sections and the offer that has no answer yet. */
export class Subscription {
  readonly handle: MediaSubscriber;
  readonly node: MediaNode;
  readonly notes = new StreamNotes();
  readonly sections = new Sections(this.notes);
  readonly candidates: HeldCandidates;
  outstanding: ServerMessages['offer'] | null = null;
  /** Whether the client has got an offer, and so has a peer connection. */
  offered = false;
  /** False while another gateway may have changed the sections since it wrote what they carry. */
  isVerified = true;
  /** Whether the handle may be another gateway's by now. */
  #isDoubtful = false;
  readonly #host: SubscriptionHost;
  #mustRestart = false;

  constructor(host: SubscriptionHost, node: MediaNode, handle: MediaSubscriber) {
    this.#host = host;
    this.handle = handle;
    this.node = node;
    this.candidates = new HeldCandidates(host, 'subscriber');
  }

  /** Attaches a handle in the session's room. */
  static async open(host: MediaHost, { node, session }: MediaPlace): Promise<Subscription> {
    const { roomId, sessionId, connectionNumber } = host;
    const [own] = await Promise.all([session(), node.ensureRoom(roomId)]);
    return new Subscription(host, node, await own.attachSubscriber(roomId, `${sessionId}-${connectionNumber}`));
  }

  /** Takes over a handle of a claimed session, whose last offer is answered. */
  static adopt(host: MediaHost, node: MediaNode, session: MediaSession, state: SubscriberState): Subscription {
    const { roomId, sessionId, connectionNumber } = host;
    const { handle: handleId, sectionCount, sections } = state;
    const streams = sections.flatMap(({ stream, mid }) => (stream === null ? [] : [{ ...stream, subscriberMid: mid }]));
    const label = `${sessionId}-${connectionNumber}`;
    const adopted = new Subscription(host, node, session.adoptSubscriber({ roomId, label, handleId, streams }));
    adopted.sections.restore(sections, sectionCount);
    adopted.offered = true;
    adopted.isVerified = false;
    adopted.candidates.release();
    return adopted;
  }

  /** Asks the media server to send what is wanted: with a switch of sections where that is possible, else with an offer. */
  async align(wants: ReadonlyMap<string, Want>, index: TrackIndex): Promise<Alignment> {
    const { sections, notes, handle } = this;
    await this.#verify();
    sections.noteEnded((stream) => index.hasStream(stream));
    if (this.#mustRestart) return this.#restart();
    const plan = sections.plan(wants);
    if (plan.isExhausted) return { outcome: 'exhausted' };
    let again = false;
    if (plan.switches.length > 0) {
      const { streams, absent, offer } = await handle.switch(plan.switches);
      sections.carry(streams, wants, offer ?? undefined);
      notes.absent(absent);
      const asked = plan.switches.filter((one) => !absent.some((missing) => isSame(missing, one)));
      const mismatched = asked.filter((one) => !streams.some((stream) => isSame(stream, one)));
      notes.mismatch(mismatched);
      // Mismatched streams need an offer. The next alignment makes it: at once, or after the answer to this offer.
      again = mismatched.length > 0 || offer !== null;
      if (offer !== null) return { outcome: 'offer', sdp: offer.sdp };
    }
    if (plan.add.length > 0 || plan.remove.length > 0) {
      const offer = await handle.update({ add: plan.add, remove: plan.remove });
      const carried = offer?.streams ?? [];
      if (offer !== null) {
        sections.carry(carried, wants, offer);
        sections.added(plan.add);
        // The sections of codecs that are not wanted any more stay. A new connection has none of them.
        if (offer.sectionCount > PROTOCOL_LIMITS.sectionsMax) return { outcome: 'exhausted' };
      }
      notes.absent(plan.add.filter((one) => !carried.some((stream) => isSame(stream, one))));
      if (offer !== null) return { outcome: 'offer', sdp: offer.sdp };
    }
    sections.assign(wants);
    const settings = sections.settings(wants);
    if (settings.length > 0) {
      await handle.configure(settings);
      sections.configured(settings, wants);
    }
    return { outcome: 'aligned', again };
  }

  /** Makes the next alignment an ICE restart. */
  noteRestart(): void {
    this.#mustRestart = true;
  }

  /** Asks for key frames of all video that is sent to the client. */
  async refresh(): Promise<void> {
    const sent = this.sections.all.filter(({ kind, stream, paused }) => kind === 'video' && stream !== null && !paused);
    await this.handle.requestKeyFrames(sent.map(({ mid }) => mid));
  }

  /** Keys of the tracks that the client has refused, as long as they are at the same place on the media server. */
  refusedKeys({ entries }: TrackIndex): ReadonlySet<string> {
    const isThere = ({ stream, key }: (typeof this.notes.refused)[number]) => {
      const track = entries.get(key);
      return track !== undefined && isSame(track, stream);
    };
    return new Set(this.notes.refused.filter(isThere).map(({ key }) => key));
  }

  /** @returns the offer for the client, which is outstanding from now on */
  offer(offerId: number, sdp: string): ServerMessages['offer'] {
    const offer = { type: 'offer' as const, offerId, sdp };
    this.outstanding = offer;
    this.offered = true;
    return offer;
  }

  /**
   * Gives the client's answer to the media server.
   * @throws RequestFailure if the answer is refused
   * @throws MediaError if the media server has lost the handle
   */
  async answer(sdp: string): Promise<void> {
    const checked = checkAnswer(sdp);
    if (!checked.ok) throw new RequestFailure(checked.refusal.code, checked.refusal.message, checked.refusal.details);
    try {
      await this.handle.answer(checked.sdp);
    } catch (error) {
      if (!(error instanceof MediaError) || error.code !== 'invalid_sdp') throw error;
      throw new RequestFailure('invalid_sdp', 'The media server refused the session description.', undefined, {
        cause: error,
      });
    }
    this.outstanding = null;
    this.sections.refuse(checked.refusedMids);
  }

  /** Call this if the client does not answer: it may have resumed the session at another gateway, and answer there. */
  doubt(): this {
    this.#isDoubtful = true;
    return this;
  }

  async #restart(): Promise<Alignment> {
    this.#mustRestart = false;
    // Candidates from now on belong to the offer.
    this.candidates.hold();
    return { outcome: 'offer', sdp: await this.handle.restart() };
  }

  /** Frees the handle, unless PostgreSQL says that another gateway holds it, or cannot be asked about a doubtful one. */
  async close(): Promise<void> {
    const { handle } = this;
    handle.removeAllListeners();
    if (this.#isDoubtful || handle.isUnanswered) {
      const isHeld = await this.#host.writeMedia().catch(() => false);
      if (!isHeld) return;
    }
    await handle.detach();
  }

  /** @throws MediaError if the client's peer connection has an offer that this gateway does not know */
  async #verify(): Promise<void> {
    while (!this.isVerified) {
      this.isVerified = true;
      if (this.sections.correct(await this.handle.listSections())) continue;
      throw new MediaError('closed', 'An offer of another gateway has no answer');
    }
  }
}

function isSame(a: StreamReference, b: StreamReference): boolean {
  return a.feedId === b.feedId && a.mid === b.mid;
}
