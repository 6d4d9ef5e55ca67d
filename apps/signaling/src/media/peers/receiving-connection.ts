import { MediaError, type MediaNode, type MediaSession } from '@callplane/media';
import { RequestFailure } from '../../connections/request-failure.js';
import type { SubscriberState } from '../handover/media-state.js';
import { mediaUnavailable } from '../media-host.js';
import type { Selection } from '../tracks/select-tracks.js';
import { HeldSubscription } from './held-subscription.js';
import { nextOfferId } from './offer-ids.js';
import type { ReceivingConnectionPort } from './receiving-connection.port.js';
import type { ReceiverAction, ReceiverEvent } from './receiver-states.js';
import { receivingMachines, type ReceivingMachines } from './receiving-machines.js';
import type { SubscriberAction } from './subscriber-states.js';
import { SubscriberTimers } from './subscriber-timers.js';
import type { Subscription } from './subscription.js';

/**
 * The receiving connection of a session, and its client's side: two state machines, `SUBSCRIBER_STATES` and
 * `RECEIVER_STATES`, whose actions this class runs.
 */
export class ReceivingConnection {
  /** Of the latest offer. */
  offerId = 0;
  readonly #port: ReceivingConnectionPort;
  readonly #peer: ReceivingMachines['peer'];
  readonly #receiver: ReceivingMachines['receiver'];
  readonly #timers = new SubscriberTimers();
  readonly #held: HeldSubscription;
  readonly #actions: Readonly<Record<SubscriberAction, () => void>> = {
    attach: () => void this.#attach(),
    align: () => void this.#align(),
    note: () => {
      this.#isNoted = true;
    },
    noteRestart: () => this.active?.noteRestart(),
    alignAgain: () => this.#alignAgain(),
    sendOffer: () => this.#sendOffer(),
    stopWaiting: () => this.#timers.stopWaiting(),
    report: () => this.#port.onAligned(),
    detach: () => this.#detach(),
    pause: () => this.#timers.pause(this.#pauseMs, () => this.#peer.dispatch('retry')),
    stopPause: () => this.#timers.stopPause(),
    loseClient: () => this.#receiver.dispatch('lost'),
  };
  #isNoted = false;
  /** What the last alignment was made for: without a change nothing has to be done. */
  #aligned: Selection | null = null;

  constructor(port: ReceivingConnectionPort) {
    this.#port = port;
    const closed = (active: Subscription, error: Error) => this.#fail(active, error);
    this.#held = new HeldSubscription(port.host, { closed, disturbed: () => this.changed() });
    const { peer, receiver } = receivingMachines(port.host, {
      peer: (action) => this.#actions[action](),
      receiver: (action) => this.#runReceiver(action),
    });
    [this.#peer, this.#receiver] = [peer, receiver];
  }

  get state(): { [Half in keyof ReceivingMachines]: ReceivingMachines[Half]['state'] } {
    return { peer: this.#peer.state, receiver: this.#receiver.state };
  }

  get active(): Subscription | null {
    return this.#held.active;
  }

  /** Goes on with the connection of another gateway. @returns false if the client may know another one */
  claim(node: MediaNode, session: MediaSession, state: SubscriberState, answeredOffer: number | undefined): boolean {
    this.offerId = state.offerId;
    if (this.#peer.state !== 'idle' || answeredOffer !== state.offerId) return false;
    this.#held.adopt(node, session, state);
    this.#peer.dispatch('claimed');
    return true;
  }

  /** @throws RequestFailure if the answer is refused, or answers no outstanding offer */
  async answer(offerId: number, sdp: string): Promise<void> {
    const active = this.active;
    if (this.#peer.state !== 'offered' || active?.outstanding?.offerId !== offerId) {
      throw new RequestFailure('conflict', 'The offer was replaced by a later one or is already answered.');
    }
    this.#peer.dispatch('answer');
    try {
      await active.answer(sdp);
    } catch (error) {
      const isLost = error instanceof MediaError;
      if (this.active === active && isLost) this.#fail(active, error);
      else if (this.active === active) this.#peer.dispatch('refused');
      throw isLost ? mediaUnavailable(error) : error;
    }
    if (this.active !== active) return;
    this.#timers.worked();
    this.#aligned = null;
    this.#peer.dispatch('accepted');
  }

  /**
   * Makes an offer with new ICE credentials, as soon as no other offer is outstanding.
   * @throws RequestFailure `conflict` if the client has no peer connection
   */
  restart(): void {
    if (this.active?.offered !== true) throw new RequestFailure('conflict', 'There is no receiving connection.');
    this.#peer.dispatch('restart');
  }

  /** Call this after a change of what is wanted. */
  changed(): void {
    this.#aligned = null;
    this.wake();
  }

  /** Call this after any change: it compares what is wanted with what is received. */
  wake(): void {
    if (this.#receiver.state !== 'open') return;
    const place = this.#port.place();
    if (place === null) return;
    if (this.active !== null && this.active.node !== place.node) void this.drop();
    // Dropping it may have blocked the client's side. The next `unblock` wakes again.
    if (!this.#isOpen) return;
    const selection = this.#port.select(this.active);
    if (this.active === null && selection.wants.size === 0) return;
    // Nothing that could matter has changed.
    if (this.#peer.state === 'stable' && selection === this.#aligned) return;
    this.#peer.dispatch('wake');
  }

  receive(event: Exclude<ReceiverEvent, 'lost'>): void {
    this.#receiver.dispatch(event);
  }

  /** Gives up the handle. Resolves once the media server has released it. */
  drop(): Promise<void> {
    const active = this.active;
    if (active?.offered === true) this.#receiver.dispatch('lost');
    this.#peer.dispatch('drop');
    return active?.close() ?? Promise.resolve();
  }

  async close(): Promise<void> {
    const active = this.active;
    this.#peer.dispatch('close');
    await active?.close();
  }

  get #isOpen(): boolean {
    return this.#receiver.state === 'open';
  }

  #runReceiver(action: ReceiverAction): void {
    if (action === 'wake') this.wake();
    else if (action === 'repeat') this.#repeat();
    else this.#timers.stopRequests();
  }

  #alignAgain(): void {
    if (!this.#isNoted) return;
    this.#isNoted = false;
    this.changed();
  }

  async #attach(): Promise<void> {
    const place = this.#port.place();
    const isAttached = await this.#held.attach(place).catch((error: unknown) => this.#fail(null, error));
    if (isAttached === true) this.#peer.dispatch('attached');
  }

  #detach(): void {
    this.#held.release();
    this.#aligned = null;
    this.#timers.stopAbsent();
    this.#port.onEnded();
  }

  async #align(): Promise<void> {
    const active = this.active;
    if (active === null) return;
    const { host } = this.#port;
    const selection = this.#port.select(active);
    try {
      const result = await active.align(selection.wants, host.tracks());
      if (this.active !== active) return;
      if (result.outcome === 'exhausted') {
        host.logger.info('subscriber has too many media sections', { sessionId: host.sessionId });
        this.#end(active, 0);
        return;
      }
      this.#requestAbsent(active, selection);
      // An alignment that makes an offer sets neither layers nor pauses. The next one, after the answer, does.
      if (result.outcome === 'offer' || result.again) this.#isNoted = true;
      if (result.outcome === 'aligned') this.#aligned = selection;
      else active.offer((this.offerId = nextOfferId(this.offerId, host)), result.sdp);
      this.#peer.dispatch(result.outcome);
    } catch (error) {
      if (this.active === active) this.#fail(active, error);
    }
  }

  #sendOffer(): void {
    const active = this.active;
    if (active?.outstanding == null) return;
    this.#port.host.send(active.outstanding);
    active.candidates.release();
    // Without a connection, the client does not get the offer before `repeat`.
    if (this.#isOpen) this.#timers.expectAnswer((error) => this.#fail(active.doubt(), error));
  }

  #repeat(): void {
    const active = this.active;
    if (active === null) return;
    active.notes.retryAbsent();
    this.#aligned = null;
    if (this.#peer.state === 'offered') this.#sendOffer();
    if (active.offered) active.candidates.repeat();
    // Otherwise the next alignment reports it.
    if (active.isVerified) this.#port.onRepeat(active);
  }

  #requestAbsent(active: Subscription, { wants }: Selection): void {
    this.#timers.stopAbsent();
    if (!active.notes.hasAbsent(wants) || !this.#isOpen) return;
    this.#timers.requestAbsent(() => {
      active.notes.retryAbsent();
      this.changed();
    });
  }

  /** The handle is lost, or was not attached. */
  #fail(active: Subscription | null, error: unknown): void {
    const { host } = this.#port;
    host.logger.info('subscriber closed', { sessionId: host.sessionId, failures: this.#timers.failures, error });
    const pauseMs = this.#pauseMs;
    // An unreachable media server is no failure of this client. The client is notified as soon as a media server is up.
    if (this.#port.place() !== null) this.#timers.failed();
    this.#end(active, pauseMs);
  }

  #end(active: Subscription | null, pauseMs: number): void {
    const isOffered = active?.offered === true;
    this.#peer.dispatch(isOffered ? 'lost' : 'failed');
    if (isOffered) this.#port.onLost(pauseMs);
  }

  get #pauseMs(): number {
    return this.#port.place() === null ? 0 : this.#timers.pauseMs;
  }
}
