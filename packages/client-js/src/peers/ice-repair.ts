import { CallplaneError, isPassing } from '../errors.js';

/** A connection that takes longer will not come up by itself: its relays may have been refused. */
const CONNECTING_FOR_MS = 10_000;
/** Short disconnections end within this time, and the present path goes on. */
const DISCONNECTED_FOR_MS = 1_000;
/**
 * How long each ICE restart may take until the next one, in milliseconds. While the network is away, a browser repeats
 * its requests to a TURN server after pauses that double, from 250 ms on. Within 3 s none of them is longer than 1.3 s, so
 * a restart that began during a cut works soon after it.
 */
const ATTEMPTS_MS = [3_000, 3_000, 3_000, 3_000, 6_000, 6_000];

export interface RepairContext {
  connection: Pick<RTCPeerConnection, 'connectionState'>;
  random: () => number;
  /** Whether the gateway can be asked. `reachable` is called once it can. */
  isReachable: () => boolean;
  /** Begins ICE anew. Rejects if that is impossible. */
  restart: () => Promise<unknown>;
  /** The path is lost, or is there again. */
  onPath: (isLost: boolean) => void;
  /** Called at most once, when restarts do not help: the connection has to be replaced. */
  replace: () => void;
}

/** Repairs a peer connection that finds no path, has lost it, or whose network has changed, with ICE restarts. */
export class IceRepair {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #attempts = 0;
  #isRestarting = false;
  /** Changes of the network, and those before the last restart that the gateway has confirmed. */
  #moves = 0;
  #movesRepaired = 0;
  #isLost = false;
  #isClosed = false;

  constructor(private readonly context: RepairContext) {
    this.#after(CONNECTING_FOR_MS);
  }

  changed(): void {
    const { connectionState } = this.context.connection;
    if (connectionState === 'connected') {
      this.#attempts = 0;
      this.#stop();
      this.#setLost(false);
      return;
    }
    if (connectionState !== 'disconnected' && connectionState !== 'failed') return;
    this.#setLost(true);
    if (this.#timer !== undefined && this.#attempts > 0) return;
    if (connectionState === 'failed') this.#attempt();
    else this.#after(DISCONNECTED_FOR_MS);
  }

  /** Call this when the gateway can be reached again: the path may be back as well. */
  reachable(): void {
    if (this.#hasMoved || this.#isLost) this.#attempt();
  }

  /** Call this when this machine has another network: the present path may be dead, although the browser waits for it. */
  networkChanged(): void {
    const { connectionState } = this.context.connection;
    if (connectionState !== 'connected' && !this.#isLost) return;
    // The restarts for earlier networks have not failed.
    if (connectionState === 'connected') this.#attempts = 0;
    // The connection to the gateway is often lost as well: then `reachable` follows.
    this.#moves += 1;
    this.#attempt();
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
  }

  #attempt(): void {
    if (this.#isClosed || !this.context.isReachable()) return;
    const attemptMs = ATTEMPTS_MS[this.#attempts];
    if (attemptMs === undefined) {
      this.#giveUp();
      return;
    }
    this.#after(attemptMs);
    // The earlier restart still waits for the gateway.
    if (this.#isRestarting) return;
    this.#attempts += 1;
    void this.#restart();
  }

  get #hasMoved(): boolean {
    return this.#moves > this.#movesRepaired;
  }

  async #restart(): Promise<void> {
    const moves = this.#moves;
    this.#isRestarting = true;
    try {
      await this.context.restart();
      this.#movesRepaired = moves;
    } catch (error) {
      // After a lost connection `reachable` follows.
      const isOver = error instanceof CallplaneError && ['connection_lost', 'closed'].includes(error.code);
      if (!isOver && !isPassing(error)) this.#giveUp();
      return;
    } finally {
      this.#isRestarting = false;
    }
    // The restart may have used the network before the present one.
    if (this.#hasMoved) this.#attempt();
  }

  /** Another attempt follows unless the connection is up by then. Clients of a lost network do not all come at once. */
  #after(milliseconds: number): void {
    clearTimeout(this.#timer);
    const next = () => {
      this.#timer = undefined;
      if (this.context.connection.connectionState === 'connected') {
        this.#attempts = 0;
        return;
      }
      this.#setLost(true);
      this.#attempt();
    };
    this.#timer = setTimeout(next, milliseconds * (0.9 + 0.2 * this.context.random()));
  }

  #setLost(isLost: boolean): void {
    if (this.#isLost !== isLost) this.context.onPath(isLost);
    this.#isLost = isLost;
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #giveUp(): void {
    if (this.#isClosed) return;
    this.close();
    this.context.replace();
  }
}
