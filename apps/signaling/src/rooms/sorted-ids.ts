/** Ids in order. New ids are mostly the greatest, because ids sort by the time of their creation. */
export class SortedIds {
  readonly #ids: string[] = [];

  get all(): readonly string[] {
    return this.#ids;
  }

  has(id: string): boolean {
    return this.#ids[this.#position(id)] === id;
  }

  add(id: string): void {
    const at = this.#position(id);
    if (this.#ids[at] !== id) this.#ids.splice(at, 0, id);
  }

  delete(id: string): void {
    const at = this.#position(id);
    if (this.#ids[at] === id) this.#ids.splice(at, 1);
  }

  /** The ids after this one; null begins with the first. */
  *after(id: string | null): Iterable<string> {
    let at = id === null ? 0 : this.#position(id);
    if (this.#ids[at] === id) at += 1;
    // By position, because copying the rest of a large roster for each page would be slow.
    for (let next = this.#ids[at]; next !== undefined; next = this.#ids[(at += 1)]) yield next;
  }

  /** Where the id is, or where it belongs. */
  #position(id: string): number {
    let low = 0;
    let high = this.#ids.length;
    const last = this.#ids[high - 1];
    if (last === undefined || last < id) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ids[middle] ?? '') < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
