/** The region of a media server or a client, such as `eu-west`: its parts go from the widest to the narrowest. */
export const REGION_PATTERN = '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$';

/** @returns how many leading parts two regions share: `eu-west` and `eu-north` one. Zero if one of them is unknown. */
export function sharedParts(one: string | null, other: string | null): number {
  if (one === null || other === null) return 0;
  const [left, right] = [one.split('-'), other.split('-')];
  const differing = left.findIndex((part, index) => part !== right[index]);
  return differing === -1 ? left.length : differing;
}
