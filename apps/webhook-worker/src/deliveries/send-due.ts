import { setTimeout as delay } from 'node:timers/promises';
import { laneOf, SLOW_FROM_MS, slotMsAfter, TURN_DELIVERIES_MAX, type SlotMs } from '@callplane/core';
import { claimDeliveries, isDatabaseUnavailable, type Claim, type ClaimedDelivery } from '@callplane/db';
import type { TurnJob } from '@callplane/queue';
import type { LRUCache } from 'lru-cache';
import type { Deps } from '../deps.js';
import { attemptDelivery, type Settled } from './attempt.js';

/**
 * A turn claims no more deliveries after TURN_MS, and sends no more of its claimed ones after TURN_MS_MAX, in milliseconds.
 * One statement settles the outcomes of the first TURN_MS, for the throughput of `bench deliveries`. An endpoint with
 * limits settles each at once: an open one holds a place. Claimed deliveries use the URL of the claim, so a change of the
 * URL takes effect within TURN_MS_MAX.
 */
const TURN_MS = 100;
const TURN_MS_MAX = 250;
/**
 * A first attempt begins within this time of the sending of its claim, in milliseconds: a frozen worker may have lost it
 * since. An attempt takes 10 s, and a worker without Redis keeps its turn for 12 s (`LOCKS` of packages/queue).
 */
const CLAIM_MS_MAX = 5000;
/** Pause after a claim that failed, in milliseconds, so that PostgreSQL can recover. */
const FAILED_PAUSE_MS = 500;

export interface Sent {
  claim: Claim;
  settling: Promise<Settled | null>[];
  slotMs: SlotMs;
}

/** The parts of a worker's `Turns` that the sending of a turn needs. */
export interface SendDueContext {
  deps: Deps;
  /** The room of the latest claim of each endpoint with an order: the next claim begins behind it. */
  lastRooms: LRUCache<string, string>;
  /** The duration of the latest attempt at each endpoint, in milliseconds: a claim takes what its turn can send. */
  durationsMs: LRUCache<string, number>;
  isDraining(): boolean;
  /** The first claim has left due deliveries. */
  onMore(turn: TurnJob, claim: Claim): void;
  /** An attempt still runs after the time from which the slow lane begins. */
  onSlow(turn: TurnJob): void;
  /** An attempt has ended before that time. */
  onQuick(turn: TurnJob): void;
}

/**
 * Claims due deliveries of the endpoint, and sends one after another until nothing is due or the turn is over. Outcomes are
 * settled beside it.
 * @param token fencing token of the turn
 */
export async function sendDue(context: SendDueContext, turn: TurnJob, token: string): Promise<Sent> {
  const { deps } = context;
  const startedAtMs = performance.now();
  const outcomes: (() => Promise<Settled | null>)[] = [];
  const settling: Promise<Settled | null>[] = [];
  const settleAll = (): void => {
    for (const settle of outcomes.splice(0)) settling.push(settle());
  };
  const settleSoon = setTimeout(settleAll, TURN_MS);
  let { slotMs } = turn;
  try {
    for (let claims = 0; ; claims += 1) {
      const askedAtMs = performance.now();
      const claim = await claimFor(context, turn, token);
      const { endpoint, claimed } = claim;
      if (claims === 0) slotMs = endpoint?.slotMs ?? null;
      const isSlow = endpoint !== null && turn.lane === 'fast' && laneOf(endpoint.slotMs) === 'slow';
      if (isSlow) return { claim: { ...claim, isMore: true }, settling, slotMs: endpoint.slotMs };
      if (claims === 0 && claim.isMore) context.onMore(turn, claim);
      for (const [index, delivery] of claimed.entries()) {
        const now = performance.now();
        const isLate = index === 0 ? now - askedAtMs > CLAIM_MS_MAX : now - startedAtMs > TURN_MS_MAX;
        if (context.isDraining() || isLate) {
          await deps.settling.release(claimed.slice(index));
          return { claim: { ...claim, isMore: true }, settling, slotMs };
        }
        const attempted = await attempt(context, turn, delivery, index === 0 ? 0 : now - askedAtMs);
        if (attempted === null) continue;
        context.durationsMs.set(turn.endpointId, attempted.attempt.durationMs);
        const expectedMs = slotMsAfter(slotMs, { durationMs: attempted.attempt.durationMs, hung: attempted.hung });
        slotMs = expectedMs;
        outcomes.push(() => attempted.settle(expectedMs));
        if (endpoint?.isLimited === true || performance.now() - startedAtMs >= TURN_MS) settleAll();
      }
      const isOver = performance.now() - startedAtMs >= TURN_MS || context.isDraining();
      if (isOver || !claim.isMore || claimed.length === 0) return { claim, settling, slotMs };
    }
  } finally {
    clearTimeout(settleSoon);
    settleAll();
  }
}

async function claimFor(
  { deps, lastRooms, durationsMs }: SendDueContext,
  { endpointId, lane }: TurnJob,
  token: string,
): Promise<Claim> {
  const { database, leaseMs, logger } = deps;
  const afterRoomId = lastRooms.get(endpointId) ?? '';
  const fitting = Math.ceil(TURN_MS_MAX / (durationsMs.get(endpointId) ?? 0));
  const deliveriesMax = Math.max(1, Math.min(TURN_DELIVERIES_MAX, fitting));
  try {
    const claim = await claimDeliveries(database, { endpointId, lane, token, leaseMs, deliveriesMax, afterRoomId });
    const room = claim.claimed.findLast(({ roomId }) => roomId !== null)?.roomId;
    if (room != null && claim.endpoint?.isLimited === true) lastRooms.set(endpointId, room);
    return claim;
  } catch (error) {
    const message = isDatabaseUnavailable(error) ? 'claims wait for PostgreSQL' : 'claim failed';
    logger.error(message, { endpointId, error });
    await delay(FAILED_PAUSE_MS);
    throw error;
  }
}

/** @param waitedMs time since the claim, whose time PostgreSQL gave. */
async function attempt(
  { deps, onSlow, onQuick }: SendDueContext,
  turn: TurnJob,
  delivery: ClaimedDelivery,
  waitedMs: number,
) {
  const overdue = setTimeout(() => onSlow(turn), SLOW_FROM_MS);
  try {
    const startedAt = new Date(delivery.startedAt.getTime() + waitedMs);
    const attempted = await attemptDelivery(deps, { ...delivery, startedAt, lagMs: delivery.lagMs + waitedMs });
    if (attempted !== null && attempted.attempt.durationMs < SLOW_FROM_MS) onQuick(turn);
    return attempted;
  } finally {
    clearTimeout(overdue);
  }
}
