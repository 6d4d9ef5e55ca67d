import type { TraceLine } from './read-traces.js';

/** The lines that may be next: no other line ended before they began, and none has an earlier version. */
export function candidates(lines: readonly TraceLine[], done: ReadonlySet<number>): number[] {
  const open = lines.flatMap((_, at) => (done.has(at) ? [] : [at]));
  const firstEndMs = Math.min(...open.map((at) => (lines[at] as TraceLine).toMs));
  const versioned = open.flatMap((at) => lines[at]?.version ?? []);
  const firstVersion = versioned.length === 0 ? null : Math.min(...versioned);
  const firstOfVersion = open.find((at) => lines[at]?.version === firstVersion);
  return open.filter((at) => {
    const { fromMs, version } = lines[at] as TraceLine;
    // A batch gives all its joins one version, in the order of their lines.
    return fromMs <= firstEndMs && (version === null || at === firstOfVersion);
  });
}

/** Whether a transition without a line may be next: each one of a room has a version. */
export function isVersionMissing(lines: readonly TraceLine[], done: ReadonlySet<number>): boolean {
  let [last, next] = [0, Infinity];
  for (const [at, { version }] of lines.entries()) {
    if (version !== null && done.has(at)) last = Math.max(last, version);
    else if (version !== null) next = Math.min(next, version);
  }
  return next > last + 1;
}

/**
 * Whether a removal is completed whose acceptance has no line. An acceptance has no version, so
 * {@link isVersionMissing} does not see it.
 */
export function isAcceptanceMissing(lines: readonly TraceLine[], done: ReadonlySet<number>): boolean {
  return lines.some(
    ({ transition, index }, at) =>
      transition === 'completeRemoval' &&
      !done.has(at) &&
      !lines.some((other) => other.transition === 'acceptRemoval' && other.index === index),
  );
}
