export interface FairQueueSettings<Item> {
  /** Maximum number of items that wait: in all, and of one key. Default: no limit. */
  waitingMax?: { all: number; perKey: number } | undefined;
  /** How long an item waits, in milliseconds. Default: no limit. */
  waitMsMax?: number | undefined;
  /** An item has waited for `waitMsMax`, and has left the queue. */
  onExpired?(item: Item): void;
  /** Whether a key without waiting items keeps its turn, for example while its work still runs. Default: no. */
  keepsTurn?(key: string): boolean;
}

interface Waiting<Item> {
  readonly item: Item;
  readonly timer: NodeJS.Timeout | undefined;
}

/** A queue in which keys take turns (round robin). So a key with many items delays each other key by one item a round. */
export class FairQueue<Item> {
  /** The items of each key, oldest first. The keys are in the order of their turns. */
  readonly #byKey = new Map<string, Waiting<Item>[]>();
  #size = 0;

  constructor(private readonly settings: FairQueueSettings<Item> = {}) {}

  get size(): number {
    return this.#size;
  }

  /** @returns why the item was not added, or null. */
  push(key: string, item: Item): string | null {
    const { waitingMax, waitMsMax } = this.settings;
    const ofKey = this.#byKey.get(key) ?? [];
    if (waitingMax !== undefined) {
      if (this.#size >= waitingMax.all) return `${waitingMax.all} items`;
      if (ofKey.length >= waitingMax.perKey) return `${waitingMax.perKey} items of one key`;
    }
    // Not in the timer itself: after a pause of the process, Node fires timers before it reads the answers that arrived
    // meanwhile, and an answer lets the next item begin.
    const expire = (): void => void setImmediate(() => this.#expire(key, waiting));
    const waiting = { item, timer: waitMsMax === undefined ? undefined : setTimeout(expire, waitMsMax) };
    if (ofKey.push(waiting) === 1) this.#byKey.set(key, ofKey);
    this.#size += 1;
    return null;
  }

  /**
   * Takes items until no key has one, or `judge` says so. In its turn, a key offers its oldest item. If `judge` takes it,
   * the next turn of the key comes after all other keys. If `judge` skips it, the key keeps its turn.
   */
  take(judge: (key: string, item: Item) => 'take' | 'skip' | 'stop'): Item[] {
    const taken: Item[] = [];
    // The loop comes to a key again that moves to the end.
    for (const [key, ofKey] of this.#byKey) {
      const [oldest] = ofKey;
      const judgement = oldest === undefined ? 'skip' : judge(key, oldest.item);
      if (judgement === 'stop') break;
      if (oldest !== undefined && judgement === 'take') {
        clearTimeout(oldest.timer);
        taken.push(oldest.item);
        ofKey.shift();
        this.#size -= 1;
        this.#byKey.delete(key);
        this.#byKey.set(key, ofKey);
      }
      this.#forgetIdle(key, ofKey);
    }
    return taken;
  }

  #expire(key: string, waiting: Waiting<Item>): void {
    const ofKey = this.#byKey.get(key) ?? [];
    const at = ofKey.indexOf(waiting);
    if (at === -1) return;
    ofKey.splice(at, 1);
    this.#size -= 1;
    this.#forgetIdle(key, ofKey);
    this.settings.onExpired?.(waiting.item);
  }

  #forgetIdle(key: string, ofKey: readonly Waiting<Item>[]): void {
    if (ofKey.length === 0 && this.settings.keepsTurn?.(key) !== true) this.#byKey.delete(key);
  }
}
