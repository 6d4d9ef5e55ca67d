import type { Fleet } from './fleet.js';
import type { Fault } from './plan.js';
import type { SimMediaServer } from './ports/media.js';
import { CALM, type SimRedis } from './ports/redis.js';
import type { SimProcess } from './processes.js';
import type { World } from './world.js';

/** Statements that only keep the fleet alive: a fault after them finds little. */
const DULL = /sweeps|due_floors|due_backlogs|signaling_instances|media_nodes|pg_stat_activity|LATERAL/;

/** The faults of a plan. */
export class Faults {
  /** The statements after which a process died or froze. */
  readonly points = new Set<string>();
  readonly #world: World;
  readonly #fleet: Fleet;
  readonly #redis: SimRedis;
  readonly #media: SimMediaServer;
  readonly #faults: readonly Fault[];
  /** Interesting statements by process. */
  readonly #interesting = new Map<string, number>();
  #goOn = true;

  constructor(fleet: Fleet, redis: SimRedis, media: SimMediaServer, faults: readonly Fault[]) {
    this.#world = fleet.world;
    this.#fleet = fleet;
    this.#redis = redis;
    this.#media = media;
    this.#faults = faults;
  }

  begin(): void {
    for (const fault of this.#faults) this.#schedule(fault);
  }

  end(): void {
    this.#goOn = false;
    this.#redis.weather = CALM;
    this.#redis.isAway = false;
    this.#media.state = 'up';
    for (const { process } of this.#fleet.instances.values()) process.frozenUntilMs = 0;
  }

  /** Adds a step that comes later if all processes pause. */
  planned(ms: number, label: string, run: () => void | Promise<void>): void {
    this.#world.add({ atMs: this.#world.nowMsValue + ms, process: null, label, run, isPlanned: true });
  }

  #schedule(fault: Fault): void {
    if (fault.do === 'crash' || fault.do === 'freeze') return;
    const during = (begin: () => void, end: () => void): void => {
      this.planned(fault.atMs, fault.do, begin);
      this.planned(fault.atMs + fault.forMs, `no more ${fault.do}`, end);
    };
    if (fault.do === 'all pause') {
      this.planned(fault.atMs, fault.do, () => (this.#goOn ? this.#world.jump(fault.forMs) : undefined));
    } else if (fault.do === 'redis away') {
      during(
        () => (this.#redis.isAway = true),
        () => (this.#redis.isAway = false),
      );
    } else {
      during(
        () => (this.#media.state = fault.do === 'media away' ? 'away' : 'hanging'),
        () => (this.#media.state = 'up'),
      );
    }
  }

  /** Called after each statement that has changed something. */
  async onEffect(process: SimProcess, label: string): Promise<void> {
    if (!this.#goOn || DULL.test(label)) return;
    const count = (this.#interesting.get(process.name) ?? 0) + 1;
    this.#interesting.set(process.name, count);
    for (const fault of this.#faults) {
      if (fault.do !== 'crash' && fault.do !== 'freeze') continue;
      if (`${fault.role} ${fault.index}` !== process.name || fault.afterEffects !== count) continue;
      if (fault.do === 'freeze') {
        this.#world.note(`${process.name} freezes for ${fault.forMs} ms after ${label}`);
        process.frozenUntilMs = this.#world.nowMsValue + fault.forMs;
        this.points.add(`${label} | freeze`);
      } else if (fault.isAtOnce) {
        this.points.add(`${label} | no answer`);
        await this.#fleet.crash(process, `before the answer of ${label}`);
      } else {
        this.points.add(`${label} | later`);
        const crash = (): Promise<void> => this.#fleet.crash(process, `soon after ${label}`);
        this.#world.after(this.#world.random.between(0, 30), null, 'a crash is due', crash);
      }
    }
  }
}
