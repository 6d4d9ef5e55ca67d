import type { NoticeListener } from '@callplane/queue';

/**
 * Wakes waiting requests when a worker announces that their operation has settled. One subscription serves all
 * requests, and no request polls while it is active.
 */
export class SettlementWaiter {
  readonly #listener: Pick<NoticeListener, 'isListening'>;
  readonly #waiting = new Map<string, Set<() => void>>();
  #closed = false;

  constructor(listener: Pick<NoticeListener, 'on' | 'isListening'>) {
    this.#listener = listener;
    listener.on('operationSettled', (operationId) => this.#waiting.get(operationId)?.forEach((wake) => wake()));
  }

  /** Whether the subscription is active. If it is not, no notice arrives, and a wait has to read the row. */
  get isListening(): boolean {
    return this.#listener.isListening;
  }

  /** Call it before the job is sent: a notice that arrives between the job and the call would be missed. */
  watch(operationId: string) {
    let endWait: () => void = () => undefined;
    const settled = new Promise<boolean>((resolve) => {
      endWait = () => resolve(true);
    });
    if (this.#closed) endWait();
    const others = this.#waiting.get(operationId) ?? new Set();
    others.add(endWait);
    this.#waiting.set(operationId, others);
    let timer: NodeJS.Timeout | undefined;
    return {
      /**
       * Resolves to true when the operation settles or the process drains, and to false when the time is over. Read the
       * row afterwards.
       */
      settledWithin: (ms: number): Promise<boolean> => {
        clearTimeout(timer);
        const over = new Promise<boolean>((resolve) => {
          timer = setTimeout(() => resolve(false), ms);
        });
        return Promise.race([settled, over]);
      },
      stop: (): void => {
        clearTimeout(timer);
        others.delete(endWait);
        if (others.size === 0) this.#waiting.delete(operationId);
      },
    };
  }

  /** Wakes all waiting requests, so that they answer with the current state of their row. */
  close(): Promise<void> {
    this.#closed = true;
    for (const wakes of this.#waiting.values()) wakes.forEach((wake) => wake());
    return Promise.resolve();
  }
}
