import { SIGNATURE_CONTRACT } from '@callplane/core';
import type { Arrived, Reaction, Receivers } from './ports/network.js';
import type { ReceiverMode, ReceiverPlan } from './plan.js';
import type { World } from './world.js';

/** A request that a receiver has read. */
export interface Received {
  readonly atMs: number;
  endedAtMs: number | null;
  readonly deliveryId: string;
  readonly replayCount: number;
  readonly body: string;
  /** Null: no answer, or the connection broke. */
  readonly status: number | null;
}

const SLOW_MS = 1500;
const QUICK_MS = 20;

export const hostOf = (index: number): string => `receiver-${index}.example.com`;

export class SimReceivers implements Receivers {
  readonly received: readonly Received[][];
  readonly #open = new Map<Arrived, Received>();
  isCalm = false;

  constructor(
    private readonly world: World,
    private readonly plans: readonly ReceiverPlan[],
  ) {
    this.received = plans.map(() => []);
  }

  accepts(host: string): boolean {
    return this.#modeOf(host) !== 'refuses';
  }

  receive(arrived: Arrived): Reaction {
    const reaction = this.#react(this.#modeOf(arrived.host));
    const { headers, body } = arrived;
    const received: Received = {
      atMs: this.world.nowMsValue,
      endedAtMs: null,
      deliveryId: headers[SIGNATURE_CONTRACT.deliveryIdHeader] ?? '',
      replayCount: Number(headers[SIGNATURE_CONTRACT.replayCountHeader]),
      body,
      status: reaction.do === 'answer' ? reaction.status : null,
    };
    this.received[indexOf(arrived.host)]?.push(received);
    this.#open.set(arrived, received);
    this.world.note(`${arrived.host} reads ${received.deliveryId}, and will ${reaction.do}`);
    return reaction;
  }

  ended(arrived: Arrived): void {
    const received = this.#open.get(arrived);
    if (received !== undefined) received.endedAtMs = this.world.nowMsValue;
    this.#open.delete(arrived);
  }

  #react(mode: ReceiverMode): Reaction {
    if (mode === 'fails') return { do: 'answer', status: 500, afterMs: QUICK_MS };
    if (mode === 'hangs') return { do: 'hang' };
    if (mode === 'breaks') return { do: 'break', afterMs: QUICK_MS };
    return { do: 'answer', status: 200, afterMs: mode === 'slow' ? SLOW_MS : QUICK_MS };
  }

  #modeOf(host: string): ReceiverMode {
    const plan = this.plans[indexOf(host)];
    if (plan === undefined || (plan.isDead && this.isCalm)) return 'fails';
    if (this.isCalm) return 'ok';
    let left = this.world.monotonicMs();
    for (const { mode, forMs } of plan.phases) {
      if (left < forMs) return mode;
      left -= forMs;
    }
    return plan.phases.at(-1)?.mode ?? 'ok';
  }
}

function indexOf(host: string): number {
  return Number(/^receiver-(\d+)\./.exec(host)?.[1] ?? -1);
}
