import type { IceServersMessage } from './protocol.generated.js';
import type { Session } from './signaling/session.js';

/** Renews TURN credentials at this fraction of their lifetime. */
const RENEW_AT = 0.8;
const RENEW_AFTER_AT_LEAST_MS = 1_000;
/** The longest pause that setTimeout() supports. */
const TIMER_MAX_MS = 2 ** 31 - 1;
const TRY_AGAIN_AFTER_MS = 30_000;

/** Keeps the ICE servers of peer connections current: a call may outlast its TURN credentials. */
export class IceServers {
  configuration: RTCConfiguration;
  readonly #session: Session;
  readonly #now: () => number;
  readonly #onChange: (configuration: RTCConfiguration) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param onChange called with the configuration for the connections that exist */
  constructor(
    session: Session,
    now: () => number,
    iceTransportPolicy: RTCIceTransportPolicy,
    onChange: (configuration: RTCConfiguration) => void,
  ) {
    this.#session = session;
    this.#now = now;
    this.configuration = { iceTransportPolicy, bundlePolicy: 'max-bundle' };
    this.#onChange = onChange;
  }

  set({ iceServers, iceServersExpireAt }: Pick<IceServersMessage, 'iceServers' | 'iceServersExpireAt'>): void {
    this.configuration = { ...this.configuration, iceServers };
    this.#onChange(this.configuration);
    const lifeMs = Date.parse(iceServersExpireAt) - this.#now();
    this.#renewAfter(Math.max(RENEW_AFTER_AT_LEAST_MS, lifeMs * RENEW_AT));
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #renewAfter(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#renew(), Math.min(milliseconds, TIMER_MAX_MS));
  }

  async #renew(): Promise<void> {
    try {
      this.set(await this.#session.request({ type: 'iceServers' }));
    } catch {
      if (this.#session.state !== 'closed') this.#renewAfter(TRY_AGAIN_AFTER_MS);
    }
  }
}
