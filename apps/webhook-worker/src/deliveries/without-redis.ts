import { randomUUID } from 'node:crypto';
import { CONCURRENCY_PER_WORKER, laneOf } from '@callplane/core';
import type { Turn, TurnJob } from '@callplane/queue';
import type { Next } from './admission.js';

/**
 * Turns that may wait for a slot of the slow lane. They wait in the order of the scans, which does not know how many
 * slots their environments use meanwhile. So they are few, and turns of a later scan begin soon.
 */
const SLOW_WAITING_MAX = 2 * CONCURRENCY_PER_WORKER;

interface Runner {
  hasRedis(): boolean;
  isDraining(): boolean;
  waitingSlow(): number;
  /** @param isOver asked when the turn has its slot */
  run(turn: TurnJob, token: string, isOver: () => boolean): Promise<Next>;
}

/**
 * Runs the turns of an endpoint without Redis, in the same slots, until nothing is due. Turns that still wait when
 * Redis is back end: its jobs come in the order of their environments' use.
 */
export async function runWithoutRedis(runner: Runner, turn: Turn): Promise<void> {
  const isSlow = (turn.lane ?? laneOf(turn.slotMs)) === 'slow';
  if (isSlow && runner.waitingSlow() >= SLOW_WAITING_MAX) return;
  try {
    let next: Turn | undefined = turn;
    while (next !== undefined && next.delayMs === undefined && !runner.isDraining() && !runner.hasRedis()) {
      const { slotMs, lane = laneOf(slotMs), ticket = 0 }: Turn = next;
      const token = randomUUID();
      const after: Next = await runner.run({ ...next, lane, ticket, turn: token }, token, () => runner.hasRedis());
      next = 'announce' in after ? after.announce[0] : undefined;
    }
  } catch {
    // The claim is logged. The next scan finds the endpoint.
  }
}
