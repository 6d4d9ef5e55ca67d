import { backoffMs } from '../../operations/schedule.js';
import { DeliverySchedule, type Kind, type Place } from './delivery-schedule.js';
import { HUNG_SLOT_MS, SLOW_FROM_MS, type SlotMs } from './slot-time.js';

/** How a receiver responds to an attempt that begins now; `null` means never. */
export type Receiver = (nowMs: number, attempt: number) => { ms: number; status: number } | null;

export const answers =
  (ms: number, status = 200): Receiver =>
  () => ({ ms, status });
export const hangs: Receiver = () => null;

interface Row {
  dueAtMs: number;
  /** Attempts of the run so far. */
  attempts: number;
}

export interface Started {
  endpointId: string;
  kind: Kind;
  lagMs: number;
  atMs: number;
}

/** Duration of a claim, in milliseconds. */
const CLAIM_MS = 1;
const SCAN_MS = 5000;

interface Planned {
  atMs: number;
  order: number;
  run: () => void;
}

/** A binary heap: the earliest entry first; on a tie, the one that was planned first. */
class Agenda {
  readonly #heap: Planned[] = [];

  peek(): Planned | undefined {
    return this.#heap[0];
  }

  push(planned: Planned): void {
    this.#heap.push(planned);
    for (let at = this.#heap.length - 1; at > 0 && this.#isBefore(at, (at - 1) >> 1); at = (at - 1) >> 1) {
      this.#swap(at, (at - 1) >> 1);
    }
  }

  pop(): void {
    this.#swap(0, this.#heap.length - 1);
    this.#heap.pop();
    for (let at = 0; ;) {
      const child = this.#isBefore(2 * at + 2, 2 * at + 1) ? 2 * at + 2 : 2 * at + 1;
      if (!this.#isBefore(child, at)) return;
      this.#swap(at, child);
      at = child;
    }
  }

  #isBefore(one: number, other: number): boolean {
    const [first, second] = [this.#heap[one], this.#heap[other]];
    if (first === undefined || second === undefined) return false;
    return first.atMs < second.atMs || (first.atMs === second.atMs && first.order < second.order);
  }

  #swap(one: number, other: number): void {
    const [first, second] = [this.#heap[one] as Planned, this.#heap[other] as Planned];
    this.#heap[one] = second;
    this.#heap[other] = first;
  }
}

/** Runs the real schedule for one worker in virtual time; rows, claims and receivers are simulated. Deterministic. */
export class Simulation {
  nowMs = 0;
  readonly schedule: DeliverySchedule;
  readonly started: Started[] = [];
  readonly #slots: number;
  readonly #endpoints = new Map<
    string,
    { environmentId: string; receiver: Receiver; slotMs: SlotMs; first: Row[]; retry: Row[] }
  >();
  readonly #rows = new Map<Place, Row & { kind: Kind }>();
  readonly #events = new Agenda();
  #order = 0;
  #isClaiming = false;

  constructor({ slots = 4, ahead = 4 } = {}) {
    this.#slots = slots;
    this.schedule = new DeliverySchedule({ slots, ahead });
    this.every(SCAN_MS, () => this.#scan());
  }

  addEndpoint(endpointId: string, environmentId: string, receiver: Receiver, slotMs: SlotMs = null): void {
    this.#endpoints.set(endpointId, { environmentId, receiver, slotMs, first: [], retry: [] });
  }

  emit(endpointId: string, count = 1): void {
    for (let n = 0; n < count; n += 1) this.#of(endpointId).first.push({ dueAtMs: this.nowMs, attempts: 0 });
    this.#wake(endpointId);
    this.#pump();
  }

  at(atMs: number, run: () => void): void {
    this.#events.push({ atMs, order: (this.#order += 1), run });
  }

  every(ms: number, run: () => void): void {
    this.at(this.nowMs + ms, () => {
      run();
      this.every(ms, run);
    });
  }

  runUntil(untilMs: number): void {
    for (let event = this.#events.peek(); event !== undefined && event.atMs <= untilMs; event = this.#events.peek()) {
      this.#events.pop();
      this.nowMs = Math.max(this.nowMs, event.atMs);
      event.run();
    }
    this.nowMs = untilMs;
  }

  /** Lags of started attempts after their due time; for rows that have not started, their wait until now. */
  lags(endpointId: string, kind: Kind): number[] {
    const waiting = this.#of(endpointId)[kind].filter(({ dueAtMs }) => dueAtMs <= this.nowMs);
    return [
      ...this.started.filter((each) => each.endpointId === endpointId && each.kind === kind).map(({ lagMs }) => lagMs),
      ...waiting.map(({ dueAtMs }) => this.nowMs - dueAtMs),
    ].sort((one, other) => one - other);
  }

  #of(endpointId: string) {
    const endpoint = this.#endpoints.get(endpointId);
    if (endpoint === undefined) throw new Error(`no endpoint ${endpointId}`);
    return endpoint;
  }

  #wake(endpointId: string): void {
    const { environmentId, slotMs } = this.#of(endpointId);
    if (!this.schedule.knows(endpointId, this.nowMs))
      this.schedule.learn({ endpointId, environmentId, slotMs }, this.nowMs);
    this.schedule.wake(endpointId, this.nowMs);
  }

  #scan(): void {
    for (const [id, { first, retry }] of this.#endpoints) {
      const isDue = [first, retry].some((rows) => rows.some(({ dueAtMs }) => dueAtMs <= this.nowMs));
      if (isDue && !this.schedule.isReady(id)) this.#wake(id);
    }
    this.#pump();
  }

  #pump(): void {
    if (this.#isClaiming) return;
    const requests = this.schedule.take(this.nowMs);
    if (requests.length === 0) return;
    this.#isClaiming = true;
    this.at(this.nowMs + CLAIM_MS, () => {
      this.#isClaiming = false;
      for (const request of requests) {
        const rows = this.#of(request.endpointId)[request.kind];
        if (request.kind === 'retry') rows.sort((one, other) => one.dueAtMs - other.dueAtMs);
        const due = rows.slice(0, request.count).filter(({ dueAtMs }) => dueAtMs <= this.nowMs);
        const claimed = rows.splice(0, due.length);
        for (const [index, place] of this.schedule.took(request, claimed.length, this.nowMs).entries()) {
          this.#rows.set(place, { ...(claimed[index] as Row), kind: request.kind });
        }
        this.#noteLater(request.endpointId);
      }
      this.#startAll();
      this.#pump();
    });
  }

  #noteLater(endpointId: string): void {
    const next = Math.min(
      ...this.#of(endpointId)
        .retry.map(({ dueAtMs }) => dueAtMs)
        .filter((at) => at > this.nowMs),
    );
    if (next === Infinity) return;
    this.schedule.later(endpointId, next);
    this.at(next, () => {
      this.schedule.wakeLaters(this.nowMs);
      this.#pump();
    });
  }

  #startAll(): void {
    for (let place = this.schedule.start(this.nowMs); place !== undefined; place = this.schedule.start(this.nowMs)) {
      this.#send(place);
    }
    if (this.schedule.sending > this.#slots) throw new Error('more attempts than slots');
  }

  #send(place: Place): void {
    const { endpointId } = place;
    const row = this.#rows.get(place) as Row & { kind: Kind };
    this.#rows.delete(place);
    this.started.push({ endpointId, kind: row.kind, lagMs: this.nowMs - row.dueAtMs, atMs: this.nowMs });
    const answer = this.#of(endpointId).receiver(this.nowMs, row.attempts + 1);
    const durationMs = answer === null || answer.ms >= HUNG_SLOT_MS ? HUNG_SLOT_MS : answer.ms;
    let isOver = false;
    this.at(this.nowMs + SLOW_FROM_MS, () => {
      if (isOver) return;
      for (const back of this.schedule.overdue(place, this.nowMs)) {
        const given = this.#rows.get(back) as Row & { kind: Kind };
        this.#rows.delete(back);
        this.#of(back.endpointId)[given.kind].unshift(given);
        this.schedule.giveBack(back);
        this.schedule.wake(back.endpointId, this.nowMs, [given.kind]);
      }
      this.#pump();
    });
    this.at(this.nowMs + durationMs, () => {
      isOver = true;
      const slotMs = this.schedule.end(place, { durationMs, hung: durationMs >= HUNG_SLOT_MS }, this.nowMs);
      this.#of(endpointId).slotMs = slotMs;
      if (answer === null || answer.status >= 500) {
        const delayMs = backoffMs(row.attempts + 1, () => 0);
        if (delayMs !== null) {
          this.#of(endpointId).retry.push({ dueAtMs: this.nowMs + delayMs, attempts: row.attempts + 1 });
          this.#noteLater(endpointId);
        }
      }
      this.#startAll();
      this.#pump();
    });
  }
}
