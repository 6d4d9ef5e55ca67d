import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@callplane/local-servers';
import type { TestApp, TestServer } from '@callplane/testing';

export type Blow = 'killed' | 'frozen' | 'restarted';

/** A disturbance of a process, and the interval in which it did not serve, in milliseconds since 1970. */
export interface Disturbance {
  kind: string;
  port: number;
  blow: Blow;
  from: number;
  until: number;
}

/** The memory of one process of a member, from start to exit. */
interface Life {
  pid: number;
  startedAtMs: number;
  rssMb: { atMs: number; mb: number }[];
}

const FROZEN_MS = 3000;
const RSS_EVERY_MS = 1000;

/** One place in the fleet, with its current process. */
export class Member {
  readonly name: string;
  readonly kind: string;
  readonly port: number;
  readonly disturbances: Disturbance[] = [];
  readonly lives: Life[] = [];
  /** All processes so far, with their output. */
  readonly processes: TestApp[] = [];
  readonly #spawn: (port: number) => Promise<TestApp>;

  private constructor(kind: string, index: number, port: number, spawn: (port: number) => Promise<TestApp>) {
    [this.kind, this.name, this.port, this.#spawn] = [kind, `${kind} ${index}`, port, spawn];
  }

  static async start(kind: string, index: number, spawn: (port: number) => Promise<TestApp>): Promise<Member> {
    const member = new Member(kind, index, await freePort(), spawn);
    await member.#begin();
    return member;
  }

  get current(): TestApp {
    return this.processes.at(-1)!;
  }

  /** Resolves once the member serves again. */
  async suffer(blow: Blow): Promise<void> {
    const disturbance: Disturbance = { kind: this.kind, port: this.port, blow, from: Date.now(), until: Infinity };
    this.disturbances.push(disturbance);
    const app = this.current;
    if (blow === 'frozen') {
      app.freeze();
      await delay(FROZEN_MS);
      app.thaw();
    } else {
      if (blow === 'killed') app.kill('SIGKILL');
      else if ((await app.stop()).code !== 0) throw new Error(`${this.name} did not stop cleanly:\n${app.output()}`);
      await app.exited;
      await this.#begin();
    }
    disturbance.until = Date.now();
  }

  async #begin(): Promise<void> {
    const app = await this.#spawn(this.port);
    this.processes.push(app);
    this.lives.push({ pid: app.pid, startedAtMs: Date.now(), rssMb: [] });
  }

  /** Records the resident memory of the current process. */
  sample(): void {
    const life = this.lives.at(-1)!;
    try {
      const pages = Number(readFileSync(`/proc/${life.pid}/statm`, 'utf8').split(' ')[1]);
      life.rssMb.push({ atMs: Date.now(), mb: (pages * 4096) / 2 ** 20 });
    } catch {
      // The process is being replaced.
    }
  }
}

/** Disturbs PostgreSQL, Redis or Janus. */
export async function mistreat(kind: string, server: TestServer, blow: Blow): Promise<Disturbance> {
  const from = Date.now();
  if (blow === 'frozen') {
    server.freeze();
    await delay(FROZEN_MS);
    server.thaw();
  } else if (blow === 'killed') {
    server.kill('SIGKILL');
    await server.start();
  } else await server.restart();
  return { kind, port: server.port, blow, from, until: Date.now() };
}

/** Samples the memory of all members until the returned function is called. */
export function watchMemory(members: readonly Member[]): () => void {
  const timer = setInterval(() => members.forEach((member) => member.sample()), RSS_EVERY_MS);
  return () => clearInterval(timer);
}

/**
 * By how much the peak memory of each process grew from the first half of its life to the second, in MiB. Leaves out
 * processes that lived for less than `aliveMs`, and the first quarter of `aliveMs`, which is start-up.
 */
export function growthOf(members: readonly Member[], aliveMs: number): { name: string; mb: number; highest: number }[] {
  return members.flatMap(({ name, lives }) =>
    lives.flatMap(({ rssMb }) => {
      const [first, last] = [rssMb[0]?.atMs ?? 0, rssMb.at(-1)?.atMs ?? 0];
      if (last - first < aliveMs) return [];
      const settled = rssMb.filter(({ atMs }) => atMs >= first + aliveMs / 4);
      const middle = (settled[0]!.atMs + last) / 2;
      const highestOf = (half: typeof rssMb) => Math.max(...half.map(({ mb }) => mb));
      const highest = highestOf(settled.filter(({ atMs }) => atMs > middle));
      return [{ name, mb: highest - highestOf(settled.filter(({ atMs }) => atMs <= middle)), highest }];
    }),
  );
}

/**
 * Kills, freezes and restarts the members in rotation, one at a time and one step per `everyMs`, until each member has
 * had each disturbance or the time is over. `calm` resolves once the load balancer can tolerate the next one.
 */
export async function disturbInTurn(
  members: readonly Member[],
  { everyMs, until, calm }: { everyMs: number; until: number; calm: (member: Member) => Promise<unknown> },
): Promise<void> {
  const blows: readonly Blow[] = ['killed', 'frozen', 'restarted'];
  const startedAt = Date.now();
  // The number of members (two or four) and of disturbances (three) have no common divisor, so every member gets every
  // one.
  for (let step = 0; step < members.length * blows.length; step += 1) {
    await delay(Math.max(0, startedAt + step * everyMs - Date.now()));
    if (Date.now() >= until) return;
    const member = members[step % members.length]!;
    await member.suffer(blows[step % blows.length]!);
    await calm(member);
  }
}
