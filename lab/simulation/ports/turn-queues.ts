import type { Handed } from '../../../packages/queue/src/jobs/job-workers.js';
import { turnJob, type QueueName, type Turn, type TurnJob } from '../../../packages/queue/src/jobs/jobs.js';
import { running, type SimProcess } from '../processes.js';
import type { Random } from '../../src/random.js';
import type { World } from '../world.js';

type TakeTurn = (job: TurnJob, handed: Handed) => Promise<number | null>;

/** A turn in Redis, with the options of BullMQ that matter. */
interface StoredTurn {
  readonly key: string;
  readonly queue: QueueName;
  readonly data: TurnJob;
  readonly priority: number;
  holder: SimProcess | null;
  run: number;
  isStalled: boolean;
  /** Kept until the turn ends (`keepLastIfActive`). */
  next: Turn | null;
}

/** As of the queue package: a worker that does not renew its lock for this long loses its turn, in milliseconds. */
const LOCK_MS = 17_000;
const LOCK_CHECK_MS = 5000;

/** A model of the queues of BullMQ that hold the turns of endpoints. */
export class TurnQueues {
  readonly #turns = new Map<string, StoredTurn>();
  readonly #workers = new Map<string, Set<{ process: SimProcess; take: TakeTurn }>>();

  constructor(
    private readonly world: World,
    private readonly random: Random,
    private readonly weather: () => { lose: number; delayMs: number },
  ) {}

  consume(queue: string, take: TakeTurn): void {
    const process = running.getStore() as SimProcess;
    const workers = this.#workers.get(queue) ?? new Set();
    this.#workers.set(queue, workers);
    const worker = { process, take };
    workers.add(worker);
    process.onDeath.push(() => workers.delete(worker));
  }

  add(turn: Turn): void {
    const { queue, job } = turnJob(turn);
    const opts = job.opts as { deduplication?: { id: string }; jobId?: string; delay?: number; priority?: number };
    const key = `${queue} ${opts.deduplication?.id ?? opts.jobId ?? ''}`;
    const known = this.#turns.get(key);
    if (known !== undefined) {
      if (known.holder !== null && opts.deduplication !== undefined) known.next = turn;
      return;
    }
    if (this.random.chance(this.weather().lose)) {
      this.world.note(`job ${queue} gets lost`);
      return;
    }
    const { priority = 0 } = opts;
    const stored = {
      key,
      queue,
      data: job.data as TurnJob,
      priority,
      holder: null,
      run: 0,
      isStalled: false,
      next: null,
    };
    this.#turns.set(key, stored);
    this.#handLater(stored, opts.delay ?? 0);
  }

  #handLater(turn: StoredTurn, delayMs: number): void {
    const afterMs = delayMs + this.random.between(1, this.weather().delayMs);
    this.world.after(afterMs, null, `a turn of ${turn.queue} is due`, () => this.#handTurn(turn));
  }

  #handTurn(turn: StoredTurn): void {
    const workers = [...(this.#workers.get(turn.queue) ?? [])];
    if (workers.length === 0) {
      // The scan of the next worker finds the endpoint.
      this.#turns.delete(turn.key);
      return;
    }
    const { process, take } = this.random.pick(workers);
    turn.holder = process;
    turn.run += 1;
    const { queue, run, isStalled, priority } = turn;
    const ended = (backInMs: number | null): void => this.#endTurn(turn, run, backInMs);
    this.world.after(0, process, `takes a turn of ${turn.queue}`, () =>
      running.run(
        process,
        () => void take(turn.data, { queue, priority, run, isStalled }).then(ended, () => ended(null)),
      ),
    );
    this.#watchLock(turn, process, this.world.nowMsValue);
  }

  /** Another worker gets the turn of one that is dead or frozen for too long. */
  #watchLock(turn: StoredTurn, process: SimProcess, renewedAtMs: number): void {
    const { run } = turn;
    this.world.after(LOCK_CHECK_MS, null, 'locks are checked', () => {
      if (turn.holder !== process || turn.run !== run) return;
      const nowMs = this.world.nowMsValue;
      const isRunning = process.isAlive && process.frozenUntilMs <= nowMs;
      if (isRunning || nowMs - renewedAtMs < LOCK_MS) {
        this.#watchLock(turn, process, isRunning ? nowMs : renewedAtMs);
        return;
      }
      this.world.note(`the turn of ${process.name} is stalled`);
      turn.holder = null;
      turn.isStalled = true;
      this.#handLater(turn, 0);
    });
  }

  #endTurn(turn: StoredTurn, run: number, backInMs: number | null): void {
    if (turn.run !== run || turn.holder === null) return;
    turn.holder = null;
    if (backInMs !== null) {
      this.#handLater(turn, backInMs);
      return;
    }
    this.#turns.delete(turn.key);
    if (turn.next !== null) this.add(turn.next);
  }
}
