import { Slots, type Lane, type Random } from '@callplane/core';
import type { DeliveryGlance } from '@callplane/db';
import type { JobResult } from '@callplane/queue';
import { Glances } from './glances.js';

/** What an attempt told of its endpoint; null when there was none (another took the row). */
export type Attempted = {
  proves: boolean;
  /** Resolves when it is written down, or cannot be. */
  settled: Promise<void>;
} | null;

export interface DispatcherSettings {
  /** Claims that this worker may hold, and how many of them those of suspects. */
  total: number;
  suspectsMax: number;
  random: Random;
  glance(ids: readonly string[]): PromiseLike<DeliveryGlance[]>;
  /** Claims and attempts one delivery, in a slot: until it resolves. */
  work(deliveryId: string): Promise<Attempted>;
}

/**
 * Jobs that a worker looks at once. More than it has slots, so that it sees past a queue of deliveries to receivers that
 * hang; those that wait here hold nothing but their job.
 */
export const LOOKERS = 96;
/**
 * Suspects that wait here, in all and of one endpoint; others are postponed, which costs them no attempt. There is room
 * for endpoints never tried beside those that fail, and for the first delivery of each endpoint beside all others.
 */
const FAILING_WAITING_MAX = 16;
const FAILING_WAITING_PER_ENDPOINT_MAX = 4;
const NEW_WAITING_MAX = 40;
const NEW_WAITING_PER_ENDPOINT_MAX = 8;
const SUSPECTS_WAITING_MAX = 56;
/**
 * For how long a delivery is postponed, in milliseconds: each one that is postponed already adds its share, so that a
 * large backlog is looked at no more than 100 times a second.
 */
const POSTPONE_MS_MIN = 1000;
const POSTPONE_MS_MAX = 30_000;
const POSTPONE_MS_EACH = 10;
/** A postponed job that has not come back by then, in milliseconds, was lost or went to another worker. */
const POSTPONED_FORGOTTEN_MS = 10_000;
/** With this many waiting that could start, another look is in no hurry. */
const BUSY_FROM = 8;

const DONE: JobResult = { again: false };
/** For another worker, as this one drains. */
const LATER: JobResult = { again: true, delayMs: 0 };

interface Local {
  endpointId: string;
  stop(): void;
}

/** Decides in which order the deliveries that this worker was told of get its slots. */
export class Dispatcher {
  readonly #settings: DispatcherSettings;
  readonly #slots: Slots;
  readonly #glances: Glances;
  readonly #waiting = new Map<string, Local>();
  /** Of suspects, by endpoint. */
  readonly #suspects = new Map<string, number>();
  /** When each postponed delivery comes back. */
  readonly #postponed = new Map<string, number>();
  /** What the latest attempt said of each endpoint: newer than a look that began before it. */
  readonly #standings = new Map<string, { lane: Lane; at: number }>();
  #isDraining = false;

  constructor(settings: DispatcherSettings) {
    this.#settings = settings;
    this.#slots = new Slots(settings);
    this.#glances = new Glances(settings.glance, () => this.#slots.waiting('proven') >= BUSY_FROM);
  }

  /** What became of one wake-up. Rejects when PostgreSQL cannot be asked; the row is left to the sweep. */
  async process(deliveryId: string): Promise<JobResult> {
    this.#postponed.delete(deliveryId);
    if (this.#mayNotStart()) return LATER;
    // Two jobs may tell of the same row; one that waits here is enough.
    if (this.#waiting.has(deliveryId)) return DONE;
    const glance = await this.#glances.glanceAt(deliveryId);
    if (glance === null || this.#waiting.has(deliveryId)) return DONE;
    const { delivery, lookedAt } = glance;
    if (delivery.dueInMs > 0) return { again: true, delayMs: delivery.dueInMs };
    if (this.#mayNotStart()) return LATER;
    const newer = this.#standings.get(delivery.endpointId);
    const lane = newer !== undefined && newer.at > lookedAt ? newer.lane : delivery.proven ? 'proven' : 'suspect';
    if (lane === 'suspect' && !this.#hasRoomFor(delivery)) return this.#postpone(deliveryId);
    return this.#waitAndWork(delivery, lane);
  }

  /** Deliveries that this worker knows of: the sweep need not wake them. */
  get known(): string[] {
    const now = performance.now();
    for (const [id, until] of this.#postponed) {
      if (now > until + POSTPONED_FORGOTTEN_MS) this.#postponed.delete(id);
    }
    return [...this.#waiting.keys(), ...this.#postponed.keys()];
  }

  get inUse(): number {
    return this.#slots.inUse;
  }

  /** Starts nothing more and gives back the jobs of what waits; what is under way ends by itself. */
  drain(): void {
    this.#isDraining = true;
    for (const { stop } of this.#waiting.values()) stop();
  }

  /** A method and not the field, because it may change while a look is under way. */
  #mayNotStart(): boolean {
    return this.#isDraining;
  }

  #waitAndWork(delivery: DeliveryGlance, lane: Lane): Promise<JobResult> {
    const { id, endpointId, isNew, isRetry } = delivery;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(id);
        if (lane === 'suspect') this.#countSuspect(endpointId, -1);
      };
      this.#waiting.set(id, {
        endpointId,
        stop: () => {
          if (!this.#slots.remove(id)) return;
          leave();
          resolve(LATER);
        },
      });
      if (lane === 'suspect') this.#countSuspect(endpointId, 1);
      const start = (taken: Lane): void => {
        leave();
        // The job ends when the attempt is written down; the slot is another's from the receiver's answer on.
        this.#work(id, endpointId)
          .finally(() => this.#slots.release(taken))
          .then((attempted) =>
            attempted === null && this.#mayNotStart() ? LATER : attempted?.settled.then(() => DONE),
          )
          .then((result) => resolve(result ?? DONE), reject);
      };
      this.#slots.enqueue({ id, endpointId, lane, isNew, isRetry, start });
    });
  }

  async #work(id: string, endpointId: string): Promise<Attempted> {
    const attempted = await this.#settings.work(id);
    if (attempted === null) return null;
    const lane = attempted.proves ? 'proven' : 'suspect';
    this.#note(endpointId, lane);
    this.#slots.setLane(endpointId, lane);
    const settled = attempted.settled.then(() => {
      // A look that began before this was written saw what was before; it must not count for newer.
      if (this.#standings.get(endpointId)?.lane === lane) this.#note(endpointId, lane);
    });
    return { ...attempted, settled };
  }

  #note(endpointId: string, lane: Lane): void {
    if (this.#standings.size > 10_000) this.#standings.clear();
    this.#standings.set(endpointId, { lane, at: performance.now() });
  }

  #hasRoomFor({ endpointId, isNew }: DeliveryGlance): boolean {
    const waiting = this.#slots.waiting('suspect');
    const ofEndpoint = this.#suspects.get(endpointId) ?? 0;
    if (ofEndpoint === 0) return waiting < SUSPECTS_WAITING_MAX;
    return isNew
      ? ofEndpoint < NEW_WAITING_PER_ENDPOINT_MAX && waiting < NEW_WAITING_MAX
      : ofEndpoint < FAILING_WAITING_PER_ENDPOINT_MAX && waiting < FAILING_WAITING_MAX;
  }

  #countSuspect(endpointId: string, by: number): void {
    const count = (this.#suspects.get(endpointId) ?? 0) + by;
    if (count === 0) this.#suspects.delete(endpointId);
    else this.#suspects.set(endpointId, count);
  }

  #postpone(deliveryId: string): JobResult {
    const share = Math.min(POSTPONE_MS_MAX, Math.max(POSTPONE_MS_MIN, this.#postponed.size * POSTPONE_MS_EACH));
    const delayMs = Math.round(share * (1 + this.#settings.random() / 2));
    this.#postponed.set(deliveryId, performance.now() + delayMs);
    return { again: true, delayMs };
  }
}
