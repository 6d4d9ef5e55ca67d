/** An element that must exist, such as the result of a batch at the index of its item. */
export function elementAt<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new Error(`no element ${index} of ${items.length}`);
  return item;
}
