/**
 * Structural sharing: a value that equals the earlier one is that earlier object, so that a comparison by identity tells
 * what has changed.
 */
export function kept<T extends object>(before: T | undefined, after: T): T {
  if (before === undefined) return after;
  const known = entriesOf(before);
  const entries = entriesOf(after);
  const isSame = entries.every(([key, value], at) => key === known[at]?.[0] && value === known[at]?.[1]);
  return isSame && known.length === entries.length ? before : after;
}

/** The same for JSON, whatever its depth. */
export function keptJson<T extends object>(before: T | undefined, after: T): T {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(after) ? before : after;
}

function entriesOf(value: object): [unknown, unknown][] {
  return value instanceof Map ? [...(value as Map<unknown, unknown>)] : Object.entries(value);
}
