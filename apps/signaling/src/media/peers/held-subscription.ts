import type { MediaNode, MediaSession } from '@callplane/media';
import type { SubscriberState } from '../handover/media-state.js';
import type { MediaHost, MediaPlace } from '../media-host.js';
import { reportSlowLink } from './slow-link.js';
import { Subscription } from './subscription.js';

export interface HeldSubscriptionEvents {
  closed(active: Subscription, error: Error): void;
  /** Another gateway has changed what the handle carries. */
  disturbed(): void;
}

/** The handle of a subscriber on a media server, from the attempt to attach it until it is given up. */
export class HeldSubscription {
  readonly #host: MediaHost;
  readonly #on: HeldSubscriptionEvents;
  #active: Subscription | null = null;
  /** Identifies the attempt to attach, so that the handle of an abandoned one is detached. */
  #attempt = 0;

  constructor(host: MediaHost, on: HeldSubscriptionEvents) {
    this.#host = host;
    this.#on = on;
  }

  get active(): Subscription | null {
    return this.#active;
  }

  /**
   * Attaches a handle.
   * @returns false if the attempt was given up meanwhile; then it does not reject
   */
  async attach(place: MediaPlace | null): Promise<boolean> {
    const attempt = (this.#attempt += 1);
    let active: Subscription;
    try {
      if (place === null) throw new Error('no media server');
      active = await Subscription.open(this.#host, place);
    } catch (error) {
      if (attempt !== this.#attempt) return false;
      throw error;
    }
    if (attempt === this.#attempt) this.#hold(active);
    else await active.close();
    return attempt === this.#attempt;
  }

  /** Goes on with the handle of another gateway. */
  adopt(node: MediaNode, session: MediaSession, state: SubscriberState): void {
    this.#hold(Subscription.adopt(this.#host, node, session, state));
  }

  release(): void {
    this.#attempt += 1;
    void this.#active?.close();
    this.#active = null;
  }

  #hold(active: Subscription): void {
    this.#active = active;
    active.handle.on('candidate', (candidate) => {
      if (this.#active === active) active.candidates.add(candidate);
    });
    reportSlowLink(this.#host, 'subscriber', active.handle);
    active.handle.on('closed', (reason) => {
      if (this.#active === active) this.#on.closed(active, new Error(`closed by the media server: ${reason}`));
    });
    active.handle.on('disturbed', () => {
      active.isVerified = false;
      if (this.#active === active) this.#on.disturbed();
    });
  }
}
