import type { HostConfig, Target } from './connection-config.js';

interface Owed {
  readonly host: number;
  /** The process id of its session, as the server reported it; null before the login. */
  pid(): number | null;
  destroy(): void;
}

/** The hosts of a database URL, and their states as the connections of a pool have seen them. */
export class Hosts {
  readonly count: number;
  readonly #owed = new Set<Owed>();
  readonly #waiting = new Set<() => void>();
  readonly #probed = new Set<number>();
  readonly #suspectSinceMs: number[];
  #next = 0;
  #answering: number | null = null;

  /** @param owedMax how many connections to one host may wait for an answer after their deadline. */
  constructor(
    private readonly target: Target,
    private readonly owedMax: number,
  ) {
    this.count = target.hosts.length;
    this.#suspectSinceMs = target.hosts.map(() => -1);
  }

  get next(): number {
    return this.#next;
  }

  configOf(host: number): HostConfig {
    const config = this.target.hosts[host];
    if (config === undefined) throw new RangeError(`no host ${host}`);
    return config();
  }

  /** The next connection goes to the next host. Several connections may fail at once. */
  onFailure(host: number): void {
    if (this.#next === host) this.#next = (host + 1) % this.count;
  }

  onConnected(host: number): void {
    if (this.#answering === host) return;
    this.#answering = host;
    this.#next = host;
    for (const owed of this.#owed) if (owed.host !== host) owed.destroy();
  }

  /**
   * A statement got no answer in time: connections that were opened before may be dead as well. The next connection
   * goes to another host, because a frozen one would take its whole share of the deadline. A standby refuses at once.
   */
  onSilence(host: number, nowMs: number): void {
    this.#suspectSinceMs[host] = nowMs;
    this.onFailure(host);
  }

  isStale(host: number, openedAtMs: number): boolean {
    const isElsewhere = this.#answering !== null && this.#answering !== host;
    return isElsewhere || openedAtMs <= (this.#suspectSinceMs[host] ?? -1);
  }

  /** Keeps a connection open until its answer. Returns false if too many wait already. */
  keep(owed: Owed): boolean {
    if (this.isFull(owed.host)) return false;
    this.#owed.add(owed);
    return true;
  }

  /** The answer came, or the connection ended. Returns whether the connection was kept for it. */
  forget(owed: Owed): boolean {
    const wasKept = this.#owed.delete(owed);
    if (wasKept) for (const retry of [...this.#waiting]) retry();
    return wasKept;
  }

  isKept(owed: Owed): boolean {
    return this.#owed.has(owed);
  }

  /** Whether the host owes answers to as many statements as the pool has connections. */
  isFull(host: number): boolean {
    return [...this.#owed].filter((owed) => owed.host === host).length >= this.owedMax;
  }

  /**
   * Whether a new connection to a full host should open nevertheless, and ask the server which of the kept ones it
   * knows. One connection at a time does. Their server may be gone without a word, while its address leads to another.
   */
  startProbe(host: number): boolean {
    if (!this.isFull(host) || this.#probed.has(host)) return false;
    this.#probed.add(host);
    return true;
  }

  endProbe(host: number): void {
    this.#probed.delete(host);
  }

  keptPids(host: number): number[] {
    return [...this.#owed].flatMap((owed) => (owed.host === host ? (owed.pid() ?? []) : []));
  }

  /** Closes the given sessions that wait for a late answer: their server is gone. */
  dropKept(host: number, pids: ReadonlySet<number>): void {
    for (const owed of [...this.#owed]) {
      if (owed.host !== host || !pids.has(owed.pid() ?? 0)) continue;
      this.forget(owed);
      owed.destroy();
    }
  }

  /**
   * Calls `connect` as soon as the host may get another connection.
   * @returns a function that ends the wait.
   */
  whenFree(host: number, connect: () => void): () => void {
    const retry = (): void => {
      if (this.isFull(host)) return;
      this.#waiting.delete(retry);
      connect();
    };
    this.#waiting.add(retry);
    retry();
    return () => this.#waiting.delete(retry);
  }

  close(): void {
    for (const owed of this.#owed) owed.destroy();
  }
}
