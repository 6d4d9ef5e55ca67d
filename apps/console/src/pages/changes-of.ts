/** @returns the edited fields that differ from those before; a form sends no others */
export function changesOf<Fields extends object>(before: Fields, edited: Partial<Fields>): Partial<Fields> {
  const text = (value: unknown) => JSON.stringify(Array.isArray(value) ? [...(value as string[])].sort() : value);
  const names = Object.keys(edited) as (keyof Fields)[];
  return Object.fromEntries(
    names.filter((name) => text(edited[name]) !== text(before[name])).map((name) => [name, edited[name]]),
  ) as Partial<Fields>;
}
