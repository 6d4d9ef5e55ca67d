import type { Fault } from './fault-plan.js';
import type { Answer, Effect } from './ports/gate.js';
import type { Postgres } from './ports/postgres.js';
import type { SimProcess } from './processes.js';
import type { World } from './world.js';

/** The statement that admits joins and reads the facts that decide them (packages/db/src/sessions/join-locks.ts). */
const READ_OF_JOINS = /AS "liveSession"/;
/** Whether that is accepted which a frozen gateway must not overlook. */
const IS_ACCEPTED = {
  'an end': `
    SELECT 1 FROM participants p JOIN runtime_operations o ON o.room_id = p.room_id
    WHERE p.id = $1 AND o.kind = 'room.end'`,
  'a removal': `SELECT 1 FROM runtime_operations WHERE participant_id = $1 AND kind = 'participant.remove'`,
};
/** How long a gateway waits at most for that, in milliseconds. */
const FROZEN_MS = 8000;

type JoinFault = Extract<Fault, { do: 'freeze in join' }>;
/** The request of a client while the gateway of a joining participant is frozen. */
export type Interfere = (participantId: string, action: 'end' | 'remove') => void;

/**
 * Gateways that freeze between the read that decides a join and its write. Meanwhile a client ends the room or removes
 * the participant. The gateway wakes up as soon as that is accepted, because the clean-up would write more of the rows
 * that the join compares.
 */
export class JoinFaults {
  readonly #reads = new Map<string, number>();
  /** The condition that wakes a frozen gateway up. */
  readonly #frozen = new Map<SimProcess, { participantId: string; until: JoinFault['until'] }>();
  interfere: Interfere = () => undefined;

  constructor(
    private readonly world: World,
    private readonly postgres: Postgres,
    private readonly faults: readonly Fault[],
    private readonly freeze: (process: SimProcess, forMs: number, label: string) => void,
  ) {}

  onAnswer(process: SimProcess, { label, text, values }: Answer): void {
    if (!READ_OF_JOINS.test(text)) return;
    const count = (this.#reads.get(process.name) ?? 0) + 1;
    this.#reads.set(process.name, count);
    const [participantId] = values.find((value): value is string[] => Array.isArray(value)) ?? [];
    if (participantId === undefined) return;
    for (const fault of this.faults) {
      if (fault.do !== 'freeze in join' || `gateway ${fault.index}` !== process.name || fault.afterReads !== count)
        continue;
      this.freeze(process, FROZEN_MS, label);
      this.#frozen.set(process, { participantId, until: fault.until });
      this.interfere(participantId, fault.until === 'an end' ? 'end' : 'remove');
    }
  }

  async onEffect({ isCommitted }: Effect): Promise<void> {
    if (!isCommitted) return;
    for (const [process, { participantId, until }] of this.#frozen) {
      if ((await this.postgres.query(IS_ACCEPTED[until], [participantId])).length === 0) continue;
      this.#frozen.delete(process);
      process.frozenUntilMs = Math.min(process.frozenUntilMs, this.world.nowMsValue);
      this.world.note(`${process.name} wakes up`);
    }
  }
}
