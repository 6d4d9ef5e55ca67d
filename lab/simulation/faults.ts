import { LEASE_SECONDS } from '@callplane/core';
import type { Fleet } from './fleet.js';
import { CLAIM, LeaseFaults } from './lease-faults.js';
import type { Fault, ForwardState } from './fault-plan.js';
import type { Answer, Effect } from './ports/gate.js';
import type { SimMedia } from './ports/media.js';
import type { Postgres } from './ports/postgres.js';
import { CALM, type SimRedis } from './ports/redis.js';
import type { SimProcess } from './processes.js';
import type { Until } from './settle.js';
import type { World } from './world.js';

/** Statements that only keep the fleet alive: a fault after them finds little. */
const DULL = /sweeps|signaling_instances|media_nodes|pg_stat_activity|LATERAL/;

/** How long the others run before a process wakes up that was frozen for long, in milliseconds. */
const OTHERS_RUN_MS = 10_000;
/** Until a process wakes up whose lease another one takes over, in milliseconds. */
const WAKES_AFTER_MS = [0, 0, 3, 20];

/** The statements of packages/db/src/media/media-forwards.ts. */
const FORWARD_ENTERS: Readonly<Record<ForwardState, RegExp>> = {
  opening: /INSERT INTO media_forwards/,
  up: /UPDATE media_forwards SET state = 'up'/,
  closing: /UPDATE media_forwards f? ?SET state = 'closing'/,
  deleted: /DELETE FROM media_forwards/,
};

export class Faults {
  readonly #world: World;
  readonly #interesting = new Map<string, number>();
  readonly #joins: JoinFaults;
  readonly #frozenAtMs = new Map<SimProcess, number>();
  readonly #leases: LeaseFaults;
  readonly #done = new Set<Fault>();
  #goOn = true;

  constructor(
    private readonly fleet: Fleet,
    private readonly redis: SimRedis,
    private readonly media: SimMedia,
    private readonly postgres: Postgres,
    private readonly faults: readonly Fault[],
  ) {
    this.#world = fleet.world;
    const freeze = (process: SimProcess, forMs: number, label: string): void => this.#freeze(process, forMs, label);
    this.#leases = new LeaseFaults(fleet, postgres, faults, freeze);
    this.#joins = new JoinFaults(this.#world, postgres, faults, freeze);
  }

  /** @param interfere asks for an end or a removal, as a client does. */
  begin(interfere: Interfere): void {
    this.#joins.interfere = interfere;
    for (const fault of this.faults) this.#schedule(fault);
  }

  /** Lets every freeze last for its time, which may be longer than all other faults. */
  async thaw(until: Until): Promise<void> {
    for (let left = this.faults.length; left > 0; left -= 1) {
      const frozen = [...this.fleet.instances.values()].flatMap(({ process }) =>
        this.#isFrozen(process) ? process : [],
      );
      if (frozen.length === 0) return;
      const firstMs = Math.min(...frozen.map(({ frozenUntilMs }) => frozenUntilMs));
      const standMs = firstMs - this.#world.nowMsValue - OTHERS_RUN_MS;
      if (standMs > 0) await this.#world.jump(standMs);
      await until(() => frozen.some((process) => !process.isAlive || !this.#isFrozen(process)));
    }
  }

  #isFrozen({ frozenUntilMs }: SimProcess): boolean {
    return frozenUntilMs > this.#world.nowMsValue;
  }

  end(): void {
    this.#goOn = false;
    this.redis.weather = CALM;
    this.redis.isAway = false;
    this.media.state = this.#mediaState;
    for (const { process } of this.fleet.instances.values())
      process.frozenUntilMs = Math.min(process.frozenUntilMs, this.#world.nowMsValue);
  }

  /** Ends the fault that outlasts the others. @returns whether there was one. */
  mend(): boolean {
    const wasBroken = this.media.servers.some(({ state }) => state !== 'up');
    this.media.state = 'up';
    return wasBroken;
  }

  get #mediaState(): 'up' | 'failing' {
    return this.faults.some((fault) => fault.do === 'media fails') ? 'failing' : 'up';
  }

  /** Adds a step that comes later if all processes pause. */
  planned(ms: number, label: string, run: () => void | Promise<void>): void {
    this.#world.add({ atMs: this.#world.nowMsValue + ms, process: null, label, run, isPlanned: true });
  }

  #schedule(fault: Fault): void {
    if (fault.do === 'media fails') this.media.state = 'failing';
    if (!('atMs' in fault)) return;
    if (fault.do === 'drain') {
      this.planned(fault.atMs, 'a gateway is stopped', () => this.fleet.stop(`gateway ${fault.index}`));
      return;
    }
    const during = (begin: () => void, end: () => void): void => {
      this.planned(fault.atMs, fault.do, begin);
      this.planned(fault.atMs + fault.forMs, `no more ${fault.do}`, end);
    };
    if (fault.do === 'all pause') {
      this.planned(fault.atMs, fault.do, () => (this.#goOn ? this.#world.jump(fault.forMs) : undefined));
    } else if (fault.do === 'redis away') {
      during(
        () => (this.redis.isAway = true),
        () => (this.redis.isAway = false),
      );
    } else {
      during(
        () => (this.media.state = fault.do === 'media away' ? 'away' : 'hanging'),
        () => (this.media.state = this.#mediaState),
      );
    }
  }

  onAnswer(process: SimProcess, answer: Answer): void {
    if (this.#goOn) this.#joins.onAnswer(process, answer);
  }

  async onEffect(process: SimProcess, effect: Effect): Promise<void> {
    const { label } = effect;
    await this.#joins.onEffect(effect);
    if (this.#goOn) await this.#onForward(process, effect);
    if (this.#goOn && FORWARD_ENTERS.opening.test(effect.text)) await this.#endAtForward();
    if ((await this.#leases.onLastAttempt(process, effect)) || !this.#goOn || DULL.test(label)) return;
    if (CLAIM.test(effect.text)) this.#wakeFormerHolders(process);
    if (await this.#leases.onEffect(process, effect)) return;
    const count = (this.#interesting.get(process.name) ?? 0) + 1;
    this.#interesting.set(process.name, count);
    for (const fault of this.faults) {
      if (fault.do !== 'crash' && fault.do !== 'freeze') continue;
      if (`${fault.role} ${fault.index}` !== process.name || fault.afterEffects !== count) continue;
      if (fault.do === 'freeze') {
        this.#freeze(process, fault.forMs, label);
      } else if (fault.isAtOnce) {
        await this.fleet.crash(process, `before the answer of ${label}`);
      } else {
        const crash = (): Promise<void> => this.fleet.crash(process, `soon after ${label}`);
        this.#world.after(this.#world.random.between(0, 30), null, 'a crash is due', crash);
      }
    }
  }

  async #onForward(process: SimProcess, { text, label }: Effect): Promise<void> {
    for (const fault of this.faults) {
      if (fault.do !== 'lose at forward' || !FORWARD_ENTERS[fault.state].test(text) || this.#done.has(fault)) continue;
      this.#done.add(fault);
      const { lost, how, forMs } = fault;
      const server = lost === 'writer' ? undefined : this.media.servers[lost];
      if (server === undefined) {
        if (how === 'freezes') this.#freeze(process, forMs, label);
        else await this.fleet.crash(process, `before the answer of ${label}`);
        continue;
      }
      this.#world.note(`${server.id} ${how} for ${forMs} ms after ${label}`);
      if (how === 'dies') server.lose();
      else server.state = how === 'freezes' ? 'hanging' : 'away';
      this.planned(forMs, `${server.id} runs again`, () => void (server.state = this.#mediaState));
    }
  }

  async #endAtForward(): Promise<void> {
    const fault = this.faults.find((each) => each.do === 'end at forward' && !this.#done.has(each));
    if (fault === undefined) return;
    this.#done.add(fault);
    const [row] = await this.postgres.query<{ id: string }>(`
      SELECT s.participant_id AS id FROM media_forwards f JOIN participant_sessions s ON s.id = f.session_id
      WHERE f.state = 'opening' ORDER BY f.created_at DESC, f.id LIMIT 1`);
    if (row !== undefined) this.#joins.interfere(row.id, 'end');
  }

  #freeze(process: SimProcess, forMs: number, label: string): void {
    this.#world.note(`${process.name} freezes for ${forMs} ms after ${label}`);
    process.frozenUntilMs = this.#world.nowMsValue + forMs;
    this.#frozenAtMs.set(process, this.#world.nowMsValue);
  }

  /** Processes that have lost their leases wake up while another one of their role takes over. */
  #wakeFormerHolders(writer: SimProcess): void {
    for (const { role, process } of this.fleet.instances.values()) {
      const frozenForMs = this.#world.nowMsValue - (this.#frozenAtMs.get(process) ?? Infinity);
      if (!this.#isFrozen(process) || frozenForMs < LEASE_SECONDS * 1000 || !writer.name.startsWith(`${role} `))
        continue;
      process.frozenUntilMs = this.#world.nowMsValue + this.#world.random.pick(WAKES_AFTER_MS);
      this.#world.note(`${process.name} wakes up`);
    }
  }
}

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
