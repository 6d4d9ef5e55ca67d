import type { MediaNode, MediaSession } from '@callplane/media';
import type { Candidate, ClientMessages, PeerTarget } from '@callplane/protocol';
import type { MediaState, SubscriberState } from '../handover/media-state.js';
import type { MediaHost, MediaPlace } from '../media-host.js';
import { layersOf, type Selection } from '../tracks/select-tracks.js';
import { WantedTracks } from '../tracks/wanted-tracks.js';
import { addCandidate } from './candidates.js';
import { ReceivingConnection } from './receiving-connection.js';
import { SubscriberReports } from './subscriber-reports.js';
import type { Subscription } from './subscription.js';

/** The receiving half of a session's media: what its client wants, and the connection that aligns with it. */
export class Subscriber {
  readonly #host: MediaHost;
  readonly #wanted: WantedTracks;
  readonly #reports: SubscriberReports;
  readonly #connection: ReceivingConnection;
  #mustRefresh = false;
  #selection: Selection | null = null;

  constructor(host: MediaHost, place: () => MediaPlace | null, onLost: (target: PeerTarget, pauseMs: number) => void) {
    this.#host = host;
    this.#wanted = new WantedTracks(host);
    this.#reports = new SubscriberReports(host);
    this.#connection = new ReceivingConnection({
      host,
      place,
      select: (active) => this.#select(active),
      onAligned: () => {
        const { active } = this.#connection;
        this.#reports.report(active, this.#select(active));
        host.mediaChanged();
        this.#refreshIfStable();
      },
      onRepeat: (active) => this.#reports.repeat(active),
      onEnded: () => {
        this.#reports.lost();
        host.mediaChanged();
      },
      onLost: (pauseMs) => onLost('subscriber', pauseMs),
    });
  }

  get state(): ReceivingConnection['state'] {
    return this.#connection.state;
  }

  /** What another gateway needs to go on with the connection; null while it changes, and without one. */
  handOver(): SubscriberState | null {
    const { active, offerId, state } = this.#connection;
    // Sections may be changing, because the next gateway verifies them. An unanswered offer cannot be handed over.
    const isNegotiated = state.peer === 'stable' || (state.peer === 'aligning' && active?.outstanding === null);
    if (!isNegotiated || active?.offered !== true) return null;
    const { handle, sections } = active;
    return { handle: handle.handleId, offerId, sectionCount: sections.count, sections: sections.all };
  }

  /** The client's choices by track key, for another gateway. */
  get choices(): MediaState['choices'] {
    return this.#wanted.choices;
  }

  /** Takes over the choices that the client made at another gateway. */
  restore(choices: MediaState['choices']): void {
    this.#wanted.restore(choices);
  }

  /**
   * Goes on with the connection of another gateway.
   * @param answeredOffer the last offer that the client has answered; undefined if it is not known
   * @returns false if the client's connection may differ from the one that the other gateway knew
   */
  claim(node: MediaNode, session: MediaSession, state: SubscriberState, answeredOffer: number | undefined): boolean {
    const isClaimed = this.#connection.claim(node, session, state, answeredOffer);
    // What the client knows is the last report of the other gateway.
    if (isClaimed) this.#reports.claimed();
    return isClaimed;
  }

  /** Whether a change of the room's tracks can matter. */
  get hasWants(): boolean {
    return this.#wanted.hasWants;
  }

  /** Whether the client may have a peer connection, which is lost with the handle. */
  get isActive(): boolean {
    return this.#connection.active?.offered === true;
  }

  /** @throws RequestFailure `not_found` if a track is not published */
  subscribe(tracks: ClientMessages['subscribe']['tracks']): void {
    this.#wanted.subscribe(tracks);
    this.#changed();
  }

  unsubscribe(tracks: ClientMessages['unsubscribe']['tracks']): void {
    this.#wanted.unsubscribe(tracks);
    this.#changed();
  }

  /** @throws RequestFailure if the answer is refused, or answers no outstanding offer */
  answer(offerId: number, sdp: string): Promise<void> {
    return this.#connection.answer(offerId, sdp);
  }

  /** @throws RequestFailure `conflict` if the client has no receiving connection */
  restart(): void {
    this.#connection.restart();
  }

  /** Asks for key frames of all received video, as soon as no change of it is in progress. */
  refresh(): void {
    this.#mustRefresh = true;
    this.#refreshIfStable();
  }

  /** @returns false if the peer connection does not exist (any more) */
  addCandidate(candidate: Candidate): Promise<boolean> {
    return addCandidate(this.#connection.active?.handle, candidate);
  }

  /** Call this after any change of the room's tracks or of the media server. */
  wake(): void {
    this.#connection.wake();
  }

  /** Call this when the session has lost its connection. */
  pause(): void {
    this.#connection.receive('pause');
  }

  /** Call this when the session has a connection. */
  unpause(): void {
    this.#connection.receive('unpause');
  }

  /** Call this once the client knows that its previous peer connection is lost. */
  unblock(): void {
    this.#connection.receive('unblock');
  }

  /** Forgets the client's choices: the client starts over and chooses again. */
  forget(): void {
    this.#wanted.forget();
    this.#reports.forget();
  }

  /** Gives up the handle. Resolves once the media server has released it. */
  drop(): Promise<void> {
    return this.#connection.drop();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #refreshIfStable(): void {
    const { active, state } = this.#connection;
    if (!this.#mustRefresh || active === null || state.peer !== 'stable') return;
    this.#mustRefresh = false;
    // The client's browser asks for them as well, only later.
    active.refresh().catch(() => undefined);
  }

  #changed(): void {
    this.#connection.changed();
    this.#host.mediaChanged();
    // Failures are normally reported after the alignment. Without a handle they are reported now.
    if (this.#connection.active === null) this.#reports.report(null, this.#select(null));
  }

  #select(active: Subscription | null): Selection {
    const selection =
      active === null
        ? this.#wanted.select(new Set())
        : this.#wanted.select(active.sections.held, active.refusedKeys(this.#host.tracks()));
    // Reported before the media sections carry it, so that the publishers send by then.
    if (selection !== this.#selection) this.#host.layersChanged(layersOf((this.#selection = selection)));
    return selection;
  }
}
