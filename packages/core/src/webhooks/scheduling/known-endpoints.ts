import { laneOf, type Lane, type SlotMs } from './slot-time.js';

/** The first attempts of runs and the retries wait separately, so that neither blocks the other. */
export type Kind = 'first' | 'retry';

/** The fields of an endpoint's row that the schedule needs. */
export interface EndpointRow {
  readonly endpointId: string;
  readonly environmentId: string;
  readonly slotMs: SlotMs;
}

export interface Endpoint {
  readonly id: string;
  readonly environmentId: string;
  slotMs: SlotMs;
  learnedAtMs: number;
  readonly due: Record<Kind, boolean>;
  /**
   * Whether the endpoint was woken since its running claim began: then an empty result of the claim may be outdated.
   */
  readonly rung: Record<Kind, boolean>;
  /** When its next retry is due. */
  laterAtMs: number | null;
  /** Its deliveries are due, but a limit or the order of its rooms forbids the next claim until then. */
  pause: Pause | null;
  /** When an attempt of the endpoint was last settled by this worker. */
  resumedAtMs: number;
  /** Whether the endpoint has a maximum rate. Its attempts begin right after their claim. */
  isPaced: boolean;
  turns: number;
  /** When it last responded quickly to this worker. */
  quickAtMs: number | null;
  lane: Lane;
  isWaiting: boolean;
}

/** A time without claims of an endpoint. */
export interface Pause {
  readonly untilMs: number;
  /** Whether the end of an attempt may end the pause early. It cannot if the endpoint's rate is used up. */
  readonly endsWithAttempt: boolean;
}

/** For an endpoint with both kinds due, one in this many places goes to a retry. */
const RETRY_EVERY = 4;
/** After this time the endpoint's row is read again. */
const LEARNED_FOR_MS = 30_000;
const ENDPOINTS_MAX = 10_000;
/** Maximum number of endpoints to examine for one without work. */
const FORGET_LOOKS_MAX = 100;

/** The endpoints that a worker remembers, up to a maximum; endpoints without work are dropped first. */
export class KnownEndpoints {
  readonly #max: number;
  readonly #byId = new Map<string, Endpoint>();
  /** Endpoints whose next retry is known. */
  readonly #laters = new Set<Endpoint>();
  readonly #paused = new Set<Endpoint>();
  /** Endpoints with a maximum rate, by environment. */
  readonly #paced = new Map<string, Set<Endpoint>>();

  constructor(max = ENDPOINTS_MAX) {
    this.#max = max;
  }

  get all(): Endpoint[] {
    return [...this.#byId.values()];
  }

  /** When the next retry is due or the next pause ends; null when there is none. */
  get nextLaterMs(): number | null {
    let next: number | null = null;
    for (const { laterAtMs } of this.#laters) {
      if (laterAtMs !== null && laterAtMs < (next ?? Infinity)) next = laterAtMs;
    }
    for (const { pause } of this.#paused)
      if (pause !== null && pause.untilMs < (next ?? Infinity)) next = pause.untilMs;
    return next;
  }

  get(endpointId: string): Endpoint | undefined {
    return this.#byId.get(endpointId);
  }

  knows(endpointId: string, nowMs: number): boolean {
    const endpoint = this.#byId.get(endpointId);
    return endpoint !== undefined && nowMs - endpoint.learnedAtMs < LEARNED_FOR_MS;
  }

  /**
   * Adds or updates an endpoint. The row is ignored if this worker has recently read or
   * attempted the endpoint, because its own value is newer.
   * @param isHeld whether this worker holds deliveries of the endpoint.
   * @returns undefined when the maximum is reached.
   */
  learn(row: EndpointRow, nowMs: number, isHeld: (endpointId: string) => boolean): Endpoint | undefined {
    const { endpointId: id, environmentId, slotMs } = row;
    const known = this.#byId.get(id);
    if (known !== undefined) {
      if (this.knows(id, nowMs)) return known;
      known.slotMs = slotMs;
      known.learnedAtMs = nowMs;
      return known;
    }
    if (this.#byId.size >= this.#max && !this.#forgetOne(isHeld)) return undefined;
    const endpoint: Endpoint = {
      id,
      environmentId,
      slotMs,
      learnedAtMs: nowMs,
      laterAtMs: null,
      pause: null,
      resumedAtMs: -Infinity,
      isPaced: false,
      quickAtMs: null,
      turns: 0,
      due: { first: false, retry: false },
      rung: { first: false, retry: false },
      lane: laneOf(slotMs),
      isWaiting: false,
    };
    this.#byId.set(id, endpoint);
    return endpoint;
  }

  later(endpointId: string, atMs: number): void {
    const endpoint = this.#byId.get(endpointId);
    if (endpoint === undefined) return;
    endpoint.laterAtMs = Math.min(endpoint.laterAtMs ?? Infinity, atMs);
    this.#laters.add(endpoint);
  }

  /** Returns the endpoints whose next retry is due, each once. */
  takeLaters(nowMs: number): Endpoint[] {
    const due = [...this.#laters].filter(({ laterAtMs }) => (laterAtMs ?? Infinity) <= nowMs);
    for (const endpoint of due) {
      endpoint.laterAtMs = null;
      this.#laters.delete(endpoint);
    }
    return due;
  }

  pace(endpoint: Endpoint, isPaced: boolean): void {
    if (endpoint.isPaced === isPaced) return;
    endpoint.isPaced = isPaced;
    const { environmentId } = endpoint;
    const paced = this.#paced.get(environmentId) ?? new Set<Endpoint>();
    if (isPaced) paced.add(endpoint);
    else paced.delete(endpoint);
    if (paced.size > 0) this.#paced.set(environmentId, paced);
    else this.#paced.delete(environmentId);
  }

  /** Whether a fast endpoint of the environment waits that has a maximum rate. */
  isPacedOneWaiting(environmentId: string): boolean {
    for (const { isWaiting, lane } of this.#paced.get(environmentId) ?? [])
      if (isWaiting && lane === 'fast') return true;
    return false;
  }

  /** @returns the endpoint if it pauses now. */
  pause(endpointId: string, pause: Pause, askedAtMs: number): Endpoint | undefined {
    const endpoint = this.#byId.get(endpointId);
    if (endpoint === undefined || (pause.endsWithAttempt && endpoint.resumedAtMs >= askedAtMs)) return undefined;
    endpoint.pause = pause;
    this.#paused.add(endpoint);
    return endpoint;
  }

  /** Ends a pause that was waiting for the end of an attempt. @returns the endpoint if its pause has ended. */
  resume(endpointId: string, nowMs: number): Endpoint | undefined {
    const endpoint = this.#byId.get(endpointId);
    if (endpoint === undefined) return undefined;
    endpoint.resumedAtMs = nowMs;
    if (endpoint.pause?.endsWithAttempt !== true) return undefined;
    this.#unpause(endpoint);
    return endpoint;
  }

  /** Ends the pauses that are over, and returns their endpoints. */
  takePaused(nowMs: number): Endpoint[] {
    const over = [...this.#paused].filter(({ pause }) => (pause?.untilMs ?? -Infinity) <= nowMs);
    for (const endpoint of over) this.#unpause(endpoint);
    return over;
  }

  #unpause(endpoint: Endpoint): void {
    endpoint.pause = null;
    this.#paused.delete(endpoint);
  }

  #forgetOne(isHeld: (endpointId: string) => boolean): boolean {
    for (const endpoint of [...this.#byId.values()].slice(0, FORGET_LOOKS_MAX)) {
      this.#byId.delete(endpoint.id);
      if (!endpoint.isWaiting && !isHeld(endpoint.id)) {
        // A scan finds the retries of a forgotten endpoint. Keeping them could block new endpoints for hours.
        this.#laters.delete(endpoint);
        this.#paused.delete(endpoint);
        this.pace(endpoint, false);
        return true;
      }
      // Moves the endpoint to the end, so that the next call examines it last.
      this.#byId.set(endpoint.id, endpoint);
    }
    return false;
  }
}

/** Whether deliveries of the endpoint are probably due. */
export function isReady({ due }: Endpoint): boolean {
  return due.first || due.retry;
}

/** The kind that the next place of the endpoint goes to. */
export function nextKind(endpoint: Endpoint): Kind {
  endpoint.turns += 1;
  if (!endpoint.due.first) return 'retry';
  return endpoint.due.retry && endpoint.turns % RETRY_EVERY === 0 ? 'retry' : 'first';
}
