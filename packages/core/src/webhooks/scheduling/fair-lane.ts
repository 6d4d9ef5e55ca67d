/** An endpoint that waits for a place. */
export interface WaitingEndpoint {
  readonly endpointId: string;
  readonly environmentId: string;
  /** Expected slot time of its next attempt, in milliseconds. */
  readonly slotMs: number;
  readonly isNew: boolean;
}

interface Environment {
  readonly id: string;
  /** In the order of their turns. */
  readonly endpoints: Map<string, WaitingEndpoint>;
  /** The lane's virtual time when the environment's first endpoint was added, so that idle time earns no credit. */
  readonly floorMs: number;
  /** A higher number arrived later. */
  readonly arrival: number;
  newestArrival: number;
  /** Slot time of its turns since the last one that went to the endpoint that had waited longest. */
  sinceOldestMs: number;
}

export interface LaneOrder {
  /**
   * How exactly virtual times are compared, in milliseconds.
   * - 0: exactly. On a tie, the environment that has waited longest goes first.
   * - Above 0: times within one step count as equal. On a tie, the environment that arrived last goes first, because
   *   the earliest step is full of environments whose endpoints hang, and a new one would otherwise wait for all of
   *   them.
   */
  readonly stepMs: number;
}

/**
 * With steps, the environment (or endpoint) that has waited longest gets a turn after the others have used this many
 * steps of slot time: after three attempts that hang. It counts time and not turns, because a turn of a new endpoint
 * that answers at once costs no slot time. Counting turns, a tenant that adds some endpoints in ten seconds would lose a slot
 * to one that hangs for each three of them, and wait for minutes.
 */
const OLDEST_AFTER_STEPS = 2.5;
const IDLE_REMEMBERED_MAX = 1000;

/**
 * The order of turns within a lane: first environments by slot time (start-time fair queueing), then the endpoints of
 * the environment in turn. It has no clock: virtual time is the slot time that was charged. (`Turns` is the simpler
 * order of operations: they have no lanes, and the time that they take does not count.)
 */
export class FairLane {
  readonly #stepMs: number;
  readonly #environments = new Map<string, Environment>();
  /** Virtual time of each environment, including idle ones that are ahead of the lane. */
  readonly #usedMs = new Map<string, number>();
  #virtualMs = 0;
  #size = 0;
  #arrivals = 0;
  /** Slot time of the turns since the last one that went to the environment that had waited longest. */
  #sinceOldestMs = 0;

  constructor({ stepMs }: LaneOrder) {
    this.#stepMs = stepMs;
  }

  /** The number of endpoints that wait. */
  get size(): number {
    return this.#size;
  }

  /** Adds an endpoint, or updates one that is already waiting. */
  add(waiting: WaitingEndpoint): void {
    const arrival = (this.#arrivals += 1);
    const environment = this.#environments.get(waiting.environmentId) ?? {
      id: waiting.environmentId,
      endpoints: new Map<string, WaitingEndpoint>(),
      floorMs: this.#virtualMs,
      arrival,
      newestArrival: arrival,
      sinceOldestMs: 0,
    };
    this.#environments.set(environment.id, environment);
    const isAdded = !environment.endpoints.has(waiting.endpointId);
    if (isAdded) this.#size += 1;
    if (isAdded && waiting.isNew) environment.newestArrival = arrival;
    environment.endpoints.set(waiting.endpointId, waiting);
  }

  delete({ environmentId, endpointId }: Pick<WaitingEndpoint, 'environmentId' | 'endpointId'>): void {
    const environment = this.#environments.get(environmentId);
    if (environment?.endpoints.delete(endpointId) === true) this.#size -= 1;
    if (environment?.endpoints.size === 0) this.#environments.delete(environmentId);
  }

  /** The next endpoint that may start; it keeps waiting. */
  peek(mayStart: (waiting: WaitingEndpoint) => boolean): WaitingEndpoint | undefined {
    return this.#first(mayStart)?.waiting;
  }

  /** Like `peek`, but charges the endpoint's cost and moves it behind the other endpoints of its environment. */
  pick(mayStart: (waiting: WaitingEndpoint) => boolean): WaitingEndpoint | undefined {
    const first = this.#first(mayStart);
    if (first === undefined) return undefined;
    const { environment, waiting, startMs } = first;
    this.#sinceOldestMs = this.#isOldestsTurn(this.#sinceOldestMs) ? 0 : this.#sinceOldestMs + waiting.slotMs;
    environment.sinceOldestMs = this.#isOldestsTurn(environment.sinceOldestMs)
      ? 0
      : environment.sinceOldestMs + waiting.slotMs;
    environment.endpoints.delete(waiting.endpointId);
    environment.endpoints.set(waiting.endpointId, waiting);
    this.#virtualMs = Math.max(this.#virtualMs, startMs);
    this.#usedMs.set(environment.id, startMs + waiting.slotMs);
    return waiting;
  }

  /** Corrects the charge by the difference between the used and the charged slot time. */
  charge(environmentId: string, ms: number): void {
    this.#usedMs.set(environmentId, (this.#usedMs.get(environmentId) ?? this.#virtualMs) + ms);
    this.#sinceOldestMs = Math.max(0, this.#sinceOldestMs + ms);
    const environment = this.#environments.get(environmentId);
    if (environment !== undefined) environment.sinceOldestMs = Math.max(0, environment.sinceOldestMs + ms);
    if (this.#usedMs.size <= IDLE_REMEMBERED_MAX + this.#environments.size) return;
    for (const [id, usedMs] of this.#usedMs) {
      if (usedMs <= this.#virtualMs && !this.#environments.has(id)) this.#usedMs.delete(id);
    }
  }

  #isOldestsTurn(sinceOldestMs: number): boolean {
    return sinceOldestMs >= OLDEST_AFTER_STEPS * this.#stepMs;
  }

  #first(mayStart: (waiting: WaitingEndpoint) => boolean) {
    const isOldestsTurn = this.#isOldestsTurn(this.#sinceOldestMs);
    const isBefore = (
      environment: Environment,
      tag: number,
      other: { environment: Environment; tag: number },
    ): boolean =>
      tag < other.tag ||
      (tag === other.tag &&
        (isOldestsTurn
          ? environment.arrival < other.environment.arrival
          : environment.newestArrival > other.environment.newestArrival));
    let best: { environment: Environment; waiting: WaitingEndpoint; startMs: number; tag: number } | undefined;
    for (const environment of this.#environments.values()) {
      const startMs = Math.max(environment.floorMs, this.#usedMs.get(environment.id) ?? 0);
      const step = Math.round((startMs - this.#virtualMs) / this.#stepMs);
      if (this.#stepMs > 0 && best !== undefined && !isBefore(environment, step, best)) continue;
      const waiting = this.#nextOf(environment, mayStart);
      if (waiting === undefined) continue;
      const tag = this.#stepMs === 0 ? startMs + waiting.slotMs : step;
      if (best === undefined || isBefore(environment, tag, best)) best = { environment, waiting, startMs, tag };
    }
    return best;
  }

  #nextOf(environment: Environment, mayStart: (waiting: WaitingEndpoint) => boolean): WaitingEndpoint | undefined {
    const inTurn = [...environment.endpoints.values()];
    if (!this.#isOldestsTurn(environment.sinceOldestMs)) {
      const latestNew = inTurn.findLast((waiting) => waiting.isNew && mayStart(waiting));
      if (latestNew !== undefined) return latestNew;
    }
    return inTurn.find(mayStart);
  }
}
