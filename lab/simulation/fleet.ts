import type { Logger } from '../../packages/runtime/src/index.js';
import { startApi, type ApiInstance } from './apps/api.js';
import { startCleanupWorker } from './apps/cleanup-worker.js';
import { startRecorder } from './apps/recorder.js';
import { startGateway, type GatewayInstance } from './apps/gateway.js';
import type { Parts } from './apps/tasks.js';
import { startWebhookWorker } from './apps/webhook-worker.js';
import type { Gate } from './ports/gate.js';
import type { SimMedia } from './ports/media.js';
import { running, type SimProcess } from './processes.js';
import type { Random } from '../src/random.js';
import type { World } from './world.js';

export type Role = 'api' | 'cleanup-worker' | 'webhook-worker' | 'gateway' | 'recorder';

export interface Instance {
  readonly role: Role;
  readonly process: SimProcess;
  readonly api?: ApiInstance;
  readonly gateway?: GatewayInstance;
  /** Ends its work, as the app does when it is stopped. */
  readonly drain?: () => Promise<void>;
}

/** Until a supervisor starts a dead process again, in milliseconds. */
const RESTART_MS = 3000;

/** How often the fleet has logged a line, by its message, kind and outcome: the coverage of a run. */
export type LoggedLines = Map<string, number>;

export class Fleet {
  readonly world: World;
  readonly instances = new Map<string, Instance>();
  readonly logged: LoggedLines = new Map();
  readonly lines: { atMs: number; process: string; message: string; fields: Record<string, unknown> }[] = [];
  crashes = 0;
  readonly #stopping = new Set<SimProcess>();

  constructor(
    private readonly gate: Gate,
    private readonly parts: Omit<Parts, 'logger' | 'name'>,
    private readonly skews: Random,
  ) {
    this.world = parts.world;
  }

  start(role: Role, index: number): void {
    const name = `${role} ${index}`;
    const process = newProcess(name, this.skews.between(-400, 400));
    const logger = this.#logger(process);
    const parts: Parts = { ...this.parts, logger, name };
    running.run(process, () => {
      const instance = { role, process };
      if (role === 'api') this.instances.set(name, { ...instance, api: startApi(parts) });
      else if (role === 'gateway') {
        const gateway = startGateway(parts);
        this.instances.set(name, { ...instance, gateway, drain: () => gateway.drain() });
      } else if (role === 'webhook-worker') this.instances.set(name, { ...instance, drain: startWebhookWorker(parts) });
      else {
        this.instances.set(name, instance);
        if (role === 'recorder') startRecorder(parts);
        else startCleanupWorker(parts);
      }
    });
  }

  /** Ends a process at once. A supervisor starts it again. */
  async crash(process: SimProcess, why: string): Promise<void> {
    const instance = this.instances.get(process.name);
    if (!process.isAlive || instance?.process !== process) return;
    this.crashes += 1;
    this.world.note(`${process.name} dies ${why}`);
    process.isAlive = false;
    this.instances.delete(process.name);
    this.world.forget(process);
    for (const tell of process.onDeath) tell();
    await this.gate.abandon(process);
    const [, index = ''] = / (\d+)$/.exec(process.name) ?? [];
    this.world.after(RESTART_MS, null, `${process.name} starts again`, () => this.start(instance.role, Number(index)));
  }

  /** Stops a process as a supervisor does before an update, and starts it again. */
  stop(name: string): void {
    const { role, process, drain } = this.instances.get(name) ?? {};
    if (process === undefined || drain === undefined || this.#stopping.has(process)) return;
    this.#stopping.add(process);
    const exit = (): void => this.world.after(1, null, `a ${role} exits`, () => this.crash(process, 'after its drain'));
    // Before an answer that is on its way.
    this.world.note(`${name} drains`);
    this.world.soon(process, () => void drain().then(exit));
  }

  of(role: Role): Instance[] {
    return [...this.instances.values()].filter((instance) => instance.role === role);
  }

  get media(): SimMedia {
    return this.parts.media;
  }

  #logger(process: SimProcess): Logger {
    const write = (message: string, fields: Record<string, unknown> = {}): void => {
      const known = [fields['kind'], fields['status'] ?? fields['outcome'] ?? fields['reason']];
      const key = [message, ...known.filter((value) => typeof value === 'string')].join(' ');
      this.logged.set(key, (this.logged.get(key) ?? 0) + 1);
      this.lines.push({ atMs: this.world.nowMsValue, process: process.name, message, fields });
      const error = fields['error'] instanceof Error ? `: ${fields['error'].message}` : '';
      this.world.note(`${process.name} logs "${key}"${error}`);
    };
    const logger: Logger = { error: write, warn: write, info: write, debug: () => undefined, child: () => logger };
    return logger;
  }
}

export function newProcess(name: string, skewMs = 0): SimProcess {
  return { name, isAlive: true, frozenUntilMs: 0, skewMs, effects: 0, onDeath: [], pools: [] };
}
