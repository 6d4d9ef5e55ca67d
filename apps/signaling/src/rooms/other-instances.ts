import type { RoomChange, SessionEntry } from './room-change.js';

/** The sessions of a room that this instance does not hold, counted by instance. */
export class OtherInstances {
  readonly #instanceId: string;
  /** Sessions by instance. The empty id stands for sessions that no instance holds. */
  readonly #sessions = new Map<string, number>();

  constructor(instanceId: string) {
    this.#instanceId = instanceId;
  }

  get ids(): Iterable<string> {
    return this.#sessions.keys();
  }

  get areThere(): boolean {
    return this.#sessions.size > 0;
  }

  apply(changes: readonly RoomChange[]): void {
    for (const { before, after } of changes) {
      this.#count(after, 1);
      this.#count(before, -1);
    }
  }

  #count(entry: SessionEntry | null, by: number): void {
    if (entry === null || entry.instanceId === this.#instanceId) return;
    const id = entry.instanceId ?? '';
    const count = (this.#sessions.get(id) ?? 0) + by;
    if (count === 0) this.#sessions.delete(id);
    else this.#sessions.set(id, count);
  }
}
