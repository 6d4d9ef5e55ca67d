import { bpsOf, levelAbove, PAUSED, SMALLEST } from './ladder.js';

export interface Competitor {
  key: string;
  /** The highest level that it has, that the page displays, and that the application wants. */
  highest: number;
  /** Pictures a second in a level with the whole frame rate; 0 if not known. */
  frameRate: number;
  /** Tracks of a higher rank keep their quality longer. */
  rank: number;
  measured: readonly (number | undefined)[];
}

/** Sums of fractions differ a little from the budget that was made of them. */
const ROUNDING_BPS = 1;

/**
 * Divides the bits between the tracks, in the order of their ranks: first every track gets a picture, then a decent one;
 * what is left goes to the first ones.
 * @returns the level of each track, by key
 */
export function allocate(competitors: readonly Competitor[], budgetBps: number): Map<string, number> {
  const levels = new Map(competitors.map(({ key }) => [key, PAUSED]));
  const ordered = [...competitors].sort((a, b) => b.rank - a.rank || (a.key < b.key ? -1 : 1));
  let left = budgetBps;
  const raise = (one: Competitor, to: number) => {
    const highest = Math.min(to, one.highest);
    // A track must not jump over a level that it cannot afford: what a level really needs is known only afterwards.
    for (;;) {
      const from = levels.get(one.key) ?? PAUSED;
      const level = levelAbove(from, highest, one.frameRate);
      if (level <= from) return;
      const more = bpsOf(level, one.measured) - bpsOf(from, one.measured);
      if (more > left + ROUNDING_BPS) return;
      left -= more;
      levels.set(one.key, level);
    }
  };
  for (const to of [1, SMALLEST, Infinity]) for (const one of ordered) raise(one, to);
  return levels;
}

export function costOf(competitors: readonly Competitor[], levels: ReadonlyMap<string, number>): number {
  return competitors.reduce((sum, { key, measured }) => sum + bpsOf(levels.get(key) ?? PAUSED, measured), 0);
}

/** What the tracks need if the cheapest possible step is made from these levels; undefined if all are at their highest. */
export function nextCostOf(
  competitors: readonly Competitor[],
  levels: ReadonlyMap<string, number>,
): number | undefined {
  const steps = competitors.flatMap(({ key, highest, frameRate, measured }) => {
    const level = levels.get(key) ?? PAUSED;
    if (level >= highest) return [];
    return [bpsOf(levelAbove(level, highest, frameRate), measured) - bpsOf(level, measured)];
  });
  return steps.length === 0 ? undefined : costOf(competitors, levels) + Math.min(...steps);
}

/** How many steps of single tracks lead from some levels to others. */
export function stepsBetween(
  competitors: readonly Competitor[],
  from: ReadonlyMap<string, number>,
  to: ReadonlyMap<string, number>,
): number {
  let steps = 0;
  for (const { key, frameRate } of competitors) {
    const highest = to.get(key) ?? PAUSED;
    for (let level = from.get(key) ?? PAUSED; level < highest; level = levelAbove(level, highest, frameRate))
      steps += 1;
  }
  return steps;
}
