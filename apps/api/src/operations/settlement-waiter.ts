import type { NoticeListener } from '@callplane/queue';

/** A request's wait for one operation. Start it before the operation's job is sent, or the notice may be missed. */
export interface Watch {
  /** Resolves when the operation settles, when the time is over, or when the process drains: read the row then. */
  settledWithin(ms: number): Promise<void>;
  stop(): void;
}

/** Wakes requests when a worker tells that their operation has settled: one subscription, no polling. */
export class SettlementWaiter {
  readonly #listener: Pick<NoticeListener, 'isListening'>;
  readonly #waiting = new Map<string, Set<() => void>>();
  #closed = false;

  constructor(listener: Pick<NoticeListener, 'on' | 'isListening'>) {
    this.#listener = listener;
    listener.on('operationSettled', (operationId) => this.#waiting.get(operationId)?.forEach((wake) => wake()));
  }

  /** Whether waiting makes sense: a notice sent now would arrive. */
  get isListening(): boolean {
    return this.#listener.isListening;
  }

  watch(operationId: string): Watch {
    let settle: () => void = () => undefined;
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    if (this.#closed) settle();
    const others = this.#waiting.get(operationId) ?? new Set();
    others.add(settle);
    this.#waiting.set(operationId, others);
    let timer: NodeJS.Timeout | undefined;
    return {
      settledWithin: (ms) =>
        Promise.race([
          settled,
          new Promise<void>((resolve) => {
            timer = setTimeout(resolve, ms);
          }),
        ]),
      stop: () => {
        clearTimeout(timer);
        others.delete(settle);
        if (others.size === 0) this.#waiting.delete(operationId);
      },
    };
  }

  /** Lets all waiting requests answer with what the row says now. */
  close(): Promise<void> {
    this.#closed = true;
    for (const wakes of this.#waiting.values()) wakes.forEach((wake) => wake());
    return Promise.resolve();
  }
}
