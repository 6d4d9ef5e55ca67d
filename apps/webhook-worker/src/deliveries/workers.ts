import type { DueEndpoint, SchedulableEndpoint } from '@callplane/db';
import type { Deps } from '../deps.js';
import { Scheduler, type SchedulerSettings } from './scheduler.js';

/** Minimum interval at which a full process announces due work to other processes, in milliseconds. */
const SHARE_EVERY_MS = 100;

/**
 * The workers of this process. Each has its own slots and its own schedule, and takes deliveries as if it were alone.
 * They share the connections to PostgreSQL and to receivers, doorbells, scans, and the statements of claims and
 * settles. An endpoint wakes one worker; a worker that is full passes the endpoint on to one with a free slot.
 */
export class Workers {
  readonly #deps: Deps;
  readonly #slots: number;
  readonly #all: readonly Scheduler[];
  #sharedAtMs = -Infinity;

  constructor(deps: Deps, count: number, settings: SchedulerSettings) {
    this.#deps = deps;
    this.#slots = settings.slots;
    this.#all = Array.from({ length: count }, (_, index) => {
      const logger = count === 1 ? deps.logger : deps.logger.child({ worker: index + 1 });
      return new Scheduler({ ...deps, logger }, settings, (endpoint) => this.#share(endpoint));
    });
  }

  /** The number of running attempts. */
  get inUse(): number {
    return this.#all.reduce((sum, { schedule }) => sum + schedule.sending, 0);
  }

  /** Whether a worker knows the endpoint. If not, read its row and call `wakeRead` instead of `wake`. */
  knows(endpointId: string): boolean {
    const nowMs = performance.now();
    return this.#all.some(({ schedule }) => schedule.knows(endpointId, nowMs));
  }

  /** Wakes known endpoints that may have due deliveries. */
  wake(endpointIds: readonly string[]): void {
    for (const endpointId of endpointIds) {
      const endpoint = this.#endpoint(endpointId);
      if (endpoint !== undefined) this.#wake(endpoint);
    }
  }

  /** Wakes endpoints that may have due deliveries and whose rows have just been read. */
  wakeRead(endpoints: readonly SchedulableEndpoint[]): void {
    for (const endpoint of endpoints) this.#wake(endpoint);
  }

  /**
   * Wakes endpoints that a scan found, in every worker, because one whose slots wait for slow receivers could keep them.
   * @returns the endpoints that no doorbell had announced.
   */
  wakeFound(endpoints: readonly DueEndpoint[]): DueEndpoint[] {
    const unannounced = endpoints.filter(
      ({ endpointId }) => !this.#all.some((worker) => worker.schedule.isReady(endpointId)),
    );
    const taken = new Set(this.#all.flatMap((worker) => worker.wakeFound(endpoints)));
    return unannounced.filter((endpoint) => taken.has(endpoint));
  }

  async drain(): Promise<void> {
    await Promise.all(this.#all.map((worker) => worker.drain()));
  }

  #wake(endpoint: SchedulableEndpoint): void {
    // The claim of a worker that has the endpoint already may not have seen the newest deliveries.
    const ready = this.#all.filter((worker) => worker.schedule.isReady(endpoint.endpointId));
    for (const worker of ready.length > 0 ? ready : [this.#choose(endpoint.endpointId)]) worker.wakeRead([endpoint]);
  }

  /**
   * Prefers the first worker that knows the endpoint and has little to do: while the load is low, one worker gets all
   * deliveries and claims them together. Endpoints that wait count, because several doorbells may arrive before the
   * first claim is answered, and because slow receivers leave a place free that other slow ones may not use.
   */
  #choose(endpointId: string): Scheduler {
    const nowMs = performance.now();
    const knowing = this.#all.find(({ schedule }) => schedule.load < this.#slots && schedule.knows(endpointId, nowMs));
    return knowing ?? this.#all.reduce((best, each) => (each.schedule.load < best.schedule.load ? each : best));
  }

  /** Prefers a worker that knows the endpoint: the slot time that another one remembers may be old. */
  #endpoint(endpointId: string): SchedulableEndpoint | undefined {
    const nowMs = performance.now();
    const remembering = this.#all.filter(({ schedule }) => schedule.endpoint(endpointId) !== undefined);
    const knowing = remembering.find(({ schedule }) => schedule.knows(endpointId, nowMs)) ?? remembering[0];
    return knowing?.schedule.endpoint(endpointId);
  }

  /** Passes an endpoint of a full worker on: to a worker of this process, or with a doorbell to another process. */
  #share(endpoint: SchedulableEndpoint): void {
    const { endpointId } = endpoint;
    const other = this.#all.find(({ schedule }) => schedule.hasFreePlace && !schedule.isReady(endpointId));
    if (other !== undefined) {
      other.wakeRead([endpoint]);
      return;
    }
    const nowMs = performance.now();
    if (nowMs - this.#sharedAtMs < SHARE_EVERY_MS) return;
    this.#sharedAtMs = nowMs;
    void this.#deps.producer.wakeDeliveries([{ id: endpointId, endpointId }]);
  }
}
