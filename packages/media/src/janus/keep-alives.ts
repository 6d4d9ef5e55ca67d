/** The keep-alives of one interval are sent in so many portions, so that many sessions cause no burst of requests. */
const PORTIONS = 20;

interface KeptAlive {
  keepAlive(): void;
}

/** Calls `keepAlive` of each member once per interval. The members take turns evenly. */
export class KeepAlives {
  readonly #portions = Array.from({ length: PORTIONS }, () => new Set<KeptAlive>());
  readonly #portionOf = new Map<KeptAlive, Set<KeptAlive>>();
  readonly #timer: NodeJS.Timeout;
  #turn = 0;

  constructor(everyMs: number) {
    this.#timer = setInterval(() => this.#next(), everyMs / PORTIONS);
  }

  /** Adds the member to the smallest portion. */
  add(member: KeptAlive): void {
    const portion = this.#portions.reduce((smallest, one) => (one.size < smallest.size ? one : smallest));
    portion.add(member);
    this.#portionOf.set(member, portion);
  }

  remove(member: KeptAlive): void {
    this.#portionOf.get(member)?.delete(member);
    this.#portionOf.delete(member);
  }

  /** Idempotent. */
  close(): void {
    clearInterval(this.#timer);
  }

  #next(): void {
    this.#turn = (this.#turn + 1) % PORTIONS;
    for (const member of this.#portions[this.#turn] ?? []) member.keepAlive();
  }
}
