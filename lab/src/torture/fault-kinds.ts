/** The kinds of faults, as `--faults` names them. */
export const FAULT_KINDS = [
  'kill-app',
  'freeze-app',
  'restart-app',
  'cut',
  'kill-redis',
  'freeze-redis',
  'demote-redis',
  'flush',
  'kill-nginx',
  'kill-postgres',
  'freeze-postgres',
  'promote',
  'fill',
  'clock',
  'kill-media',
  'freeze-media',
] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/** How often a kind is chosen, beside the others. */
export const WEIGHTS: Record<FaultKind, number> = {
  'kill-app': 6,
  'freeze-app': 5,
  'restart-app': 2,
  cut: 3,
  'kill-redis': 2,
  'freeze-redis': 2,
  'demote-redis': 1,
  flush: 1,
  'kill-nginx': 1,
  'kill-postgres': 1,
  'freeze-postgres': 1,
  promote: 2,
  fill: 1,
  clock: 2,
  'kill-media': 2,
  'freeze-media': 2,
};
