/** Announces that an endpoint has due deliveries. */
export interface Doorbell {
  /** A due delivery of the endpoint, or the endpoint's own id if the caller knows no such delivery. */
  id: string;
  endpointId: string;
}

export type WakeResult = { ok: true } | { ok: false; error: Error };

/**
 * Minimum interval of two doorbells of an endpoint from one process, in milliseconds. The first one is sent at once.
 * With a steady stream of events a delivery waits for half of this time on average, and one job, one claim and one
 * settle serve all deliveries of the interval.
 */
export const DOORBELL_EVERY_MS = 25;
/** Endpoints whose latest doorbell is remembered. Beyond it, all are forgotten, and their next doorbells ring at once. */
const ENDPOINTS_MAX = 10_000;

type Send = (doorbells: readonly Doorbell[]) => Promise<WakeResult>;

/** Doorbells that are sent together at the end of an interval. */
interface Later {
  byEndpoint: Map<string, Doorbell>;
  sent: Promise<WakeResult>;
  sendNow(): void;
}

/** Sends at most one doorbell of each endpoint per interval. After each call of `ring`, one follows. */
export class Doorbells {
  readonly #send: Send;
  readonly #rungAtMs = new Map<string, number>();
  #later: Later | undefined;

  constructor(send: Send) {
    this.#send = send;
  }

  /** @returns the result of sending these doorbells; the first failure if there are several. */
  async ring(doorbells: readonly Doorbell[]): Promise<WakeResult> {
    const nowMs = performance.now();
    const first = new Map<string, Doorbell>();
    const later: Doorbell[] = [];
    let waitMs = 0;
    for (const doorbell of doorbells) {
      const { endpointId } = doorbell;
      const leftMs = (this.#rungAtMs.get(endpointId) ?? -Infinity) + DOORBELL_EVERY_MS - nowMs;
      if (leftMs <= 0) first.set(endpointId, doorbell);
      else later.push(doorbell);
      waitMs = Math.max(waitMs, leftMs);
    }
    const results = [
      ...(first.size > 0 ? [this.#sendNow(first, nowMs)] : []),
      ...(later.length > 0 ? [this.#sendLater(later, waitMs)] : []),
    ];
    const failed = (await Promise.all(results)).find(({ ok }) => !ok);
    return failed ?? { ok: true };
  }

  /** Sends the doorbells that wait for the end of their interval. */
  async flush(): Promise<void> {
    const later = this.#later;
    later?.sendNow();
    await later?.sent;
  }

  #sendNow(byEndpoint: ReadonlyMap<string, Doorbell>, nowMs: number): Promise<WakeResult> {
    if (this.#rungAtMs.size > ENDPOINTS_MAX) this.#rungAtMs.clear();
    for (const endpointId of byEndpoint.keys()) this.#rungAtMs.set(endpointId, nowMs);
    return this.#send([...byEndpoint.values()]);
  }

  #sendLater(doorbells: readonly Doorbell[], waitMs: number): Promise<WakeResult> {
    const later = (this.#later ??= this.#startInterval(waitMs));
    for (const doorbell of doorbells) later.byEndpoint.set(doorbell.endpointId, doorbell);
    return later.sent;
  }

  #startInterval(waitMs: number): Later {
    const byEndpoint = new Map<string, Doorbell>();
    let sendNow = (): void => undefined;
    const sent = new Promise<WakeResult>((resolve) => {
      const timer = setTimeout(() => sendNow(), waitMs);
      sendNow = () => {
        clearTimeout(timer);
        this.#later = undefined;
        resolve(this.#sendNow(byEndpoint, performance.now()));
      };
    });
    return { byEndpoint, sent, sendNow: () => sendNow() };
  }
}
