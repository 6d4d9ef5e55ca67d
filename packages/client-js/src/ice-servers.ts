import type { IceServer } from './protocol.generated.js';
import type { Session } from './signaling/session.js';

/** Renews TURN credentials at this fraction of their lifetime. */
const RENEW_AT = 0.8;
const RENEW_AFTER_AT_LEAST_MS = 1_000;
/** The longest pause that setTimeout() supports. */
const TIMER_MAX_MS = 2 ** 31 - 1;
const TRY_AGAIN_AFTER_MS = 30_000;

/** Keeps the ICE servers current: a call may outlast its TURN credentials. */
export class IceServers {
  readonly #session: Session;
  readonly #now: () => number;
  readonly #onChange: (servers: RTCIceServer[]) => void;
  #servers: RTCIceServer[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(session: Session, now: () => number, onChange: (servers: RTCIceServer[]) => void) {
    this.#session = session;
    this.#now = now;
    this.#onChange = onChange;
  }

  get servers(): RTCIceServer[] {
    return this.#servers;
  }

  set({ iceServers, iceServersExpireAt }: { iceServers: IceServer[]; iceServersExpireAt: string }): void {
    this.#servers = iceServers.map(({ urls, username, credential }) => ({
      urls,
      ...(username === undefined ? {} : { username }),
      ...(credential === undefined ? {} : { credential }),
    }));
    this.#onChange(this.#servers);
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
