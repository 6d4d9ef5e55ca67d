import { elementAt } from './element.js';

/**
 * Runs a batch whose items must not have an owner in common: items of an owner that is in the batch already run in a
 * further round, after the others.
 * @returns the results in the order of the items.
 */
export async function inRounds<Item, Result>(
  items: readonly Item[],
  ownerOf: (item: Item) => string,
  run: (round: readonly Item[]) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const results = new Map<Item, Result>();
  let waiting = [...items];
  while (waiting.length > 0) {
    const owners = new Set<string>();
    const later: Item[] = [];
    const round = waiting.filter((item) => {
      const owner = ownerOf(item);
      if (owners.has(owner)) later.push(item);
      return !owners.has(owner) && owners.add(owner);
    });
    const made = await run(round);
    round.forEach((item, at) => results.set(item, elementAt(made, at)));
    waiting = later;
  }
  return items.map((item) => results.get(item) as Result);
}
