import { randomInt, randomUUID } from 'node:crypto';
import { laneOf, ticketsOf } from '@callplane/core';
import { takeOverLeases, type Claim } from '@callplane/db';
import type { Handed, Turn, TurnJob } from '@callplane/queue';
import { LRUCache } from 'lru-cache';
import type { Deps } from '../deps.js';
import { logEndedLeases } from '../sweep/sweep.js';
import { Admission, OVER, type Next } from './admission.js';
import { sendDue, type Sent, type SendDueContext } from './send-due.js';

/** Earlier workers of a turn whose leases are taken over. Leases of workers before them have expired. */
const TAKEN_OVER_MAX = 16;
/**
 * Endpoints whose latest room, with an order, and latest duration a worker remembers. The claims of a forgotten one begin
 * at the first room, and take more than they send.
 */
const ENDPOINTS_MAX = 10_000;

/**
 * Takes turns, from Redis or, without it, from scans: each gets a slot (`admission.ts`), sends due deliveries of its
 * endpoint (`send-due.ts`), and decides the next turn. docs/decisions/0005 explains the rules.
 */
export class Turns {
  readonly #admission: Admission;
  readonly #sending: SendDueContext;
  readonly #running = new Set<Promise<unknown>>();
  /** Turns of this process, by endpoint and ticket. */
  readonly #taken = new Set<string>();
  #isDraining = false;

  /** @param workers of this process, of four slots each. */
  constructor(
    private readonly deps: Deps,
    workers = 1,
  ) {
    this.#admission = new Admission(workers);
    this.#sending = {
      deps,
      lastRooms: new LRUCache({ max: ENDPOINTS_MAX }),
      durationsMs: new LRUCache({ max: ENDPOINTS_MAX }),
      isDraining: () => this.#isDraining,
      onMore: (turn, claim) => this.#useMoreSlots(turn, claim),
      onSlow: (turn) => this.#admission.onSlow(turn),
      onQuick: (turn) => this.#admission.onQuick(turn),
    };
  }

  get inUse(): number {
    return this.#admission.inUse;
  }

  priority(turn: Turn): number {
    return this.#admission.priority(turn);
  }

  /** Takes a turn that BullMQ has handed over. @returns the time after which it comes back; null if it is over. */
  async take(turn: TurnJob, { priority, run, isStalled }: Handed): Promise<number | null> {
    if (this.#isDraining) return 0;
    if (isStalled) await this.#takeOver(turn, run);
    const next = this.#admission.placeOf(turn, priority) ?? (await this.#track(turn, tokenOf(turn.turn, run)));
    if ('backInMs' in next) return next.backInMs;
    await this.deps.producer.wakeDeliveries(next.announce);
    return null;
  }

  /**
   * Runs the turns of an endpoint without Redis, in the same slots, until nothing is due, unless one of them runs
   * already. Turns that still wait when Redis is back end: its jobs come in the order of their environments' use.
   */
  async runDirectly(turn: Turn): Promise<void> {
    if (this.#taken.has(keyOf(turn))) return;
    try {
      let next: Turn | undefined = turn;
      while (next !== undefined && next.delayMs === undefined && !this.#isDraining && !this.#hasRedis) {
        const { slotMs, lane = laneOf(slotMs), ticket = 0 }: Turn = next;
        const token = randomUUID();
        const after: Next = await this.#track({ ...next, lane, ticket, turn: token }, token, () => this.#hasRedis);
        next = 'announce' in after ? after.announce[0] : undefined;
      }
    } catch {
      // The claim is logged. The next scan finds the endpoint.
    }
  }

  /** Begins no more attempts and waits for the running ones. Deliveries that are claimed but not sent are released. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await Promise.allSettled([...this.#running]);
  }

  get #hasRedis(): boolean {
    return this.deps.producer.health.trouble === null;
  }

  async #track(turn: TurnJob, token: string, isOver = () => false): Promise<Next> {
    const work = this.#run(turn, token, isOver);
    this.#running.add(work);
    this.#taken.add(keyOf(turn));
    try {
      return await work;
    } finally {
      this.#running.delete(work);
      this.#taken.delete(keyOf(turn));
    }
  }

  async #run(turn: TurnJob, token: string, isOver: () => boolean): Promise<Next> {
    const sent = await this.#admission.inSlot<Sent | Next>(turn, async () => {
      if (this.#isDraining) return { backInMs: 0 };
      return isOver() ? OVER : sendDue(this.#sending, turn, token);
    });
    if (!('claim' in sent)) return sent;
    const { claim, slotMs } = sent;
    const settled = await Promise.all(sent.settling);
    const { endpoint } = claim;
    if (endpoint === null) return OVER;
    const isDueAgain = claim.isMore || (endpoint.isLimited && settled.length > 0);
    if (isDueAgain) return this.#admission.again({ ...turn, slotMs }, { delayMs: endpoint.paceMs });
    const retries = settled.flatMap((each) => each?.retryInMs ?? []);
    const nextInMs = Math.min(claim.nextInMs ?? Infinity, ...retries);
    return nextInMs === Infinity ? OVER : this.#admission.again({ ...turn, slotMs, ticket: 0 }, { delayMs: nextInMs });
  }

  /** Another process, or another slot of this one, takes the next turn of the endpoint at the same time. */
  #useMoreSlots(turn: TurnJob, { endpoint, claimed }: Claim): void {
    if (endpoint === null || claimed.length === 0) return;
    if (endpoint.paceMs === null && !this.#admission.hasFreeSlot) return;
    // A random ticket that no turn of this process has. If another process has it, that turn is only repeated: with
    // tickets in their order, processes would ask for one another's tickets (bench deliveries, two processes: 1.5
    // instead of 1.9).
    const tickets = ticketsOf(endpoint.slotMs, endpoint.maxConcurrent);
    const free = Array.from({ length: tickets }, (_, ticket) => ticket).filter(
      (ticket) => !this.#taken.has(keyOf({ ...turn, ticket })),
    );
    if (tickets === 1 || free.length === 0) return;
    const ticket = free[randomInt(free.length)] as number;
    const next = this.#admission.again({ ...turn, ticket, slotMs: endpoint.slotMs }, { delayMs: endpoint.paceMs });
    for (const each of next.announce) {
      if (this.#hasRedis) void this.deps.producer.wakeDeliveries([each]);
      else void this.runDirectly(each);
    }
  }

  async #takeOver({ endpointId, turn }: TurnJob, run: number): Promise<void> {
    const { database, leaseMs } = this.deps;
    const first = Math.max(1, run - TAKEN_OVER_MAX);
    const tokens = Array.from({ length: run - first }, (_, index) => tokenOf(turn, first + index));
    logEndedLeases(this.deps, await takeOverLeases(database.sql, leaseMs, { endpointId, tokens }));
  }
}

const keyOf = ({ endpointId, ticket = 0 }: Turn): string => `${endpointId} ${ticket}`;

/** The fencing token of a worker: the last four digits of the turn's UUID are the number of its worker. */
function tokenOf(turn: string, run: number): string {
  return turn.slice(0, -4) + (run % 0x10000).toString(16).padStart(4, '0');
}
