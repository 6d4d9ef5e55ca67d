/** The load of one media node, as the database counts it. */
export interface NodeLoad {
  rooms: number;
  /** Live sessions in those rooms. */
  sessions: number;
  /** A draining node gets no new rooms. */
  draining: boolean;
  /** Number of participants that the node is meant for; null: unknown. */
  capacity: number | null;
}

/** Assumed for nodes that name no capacity, so that they can be compared with others. */
export const CAPACITY_DEFAULT = 500;

/**
 * Chooses the node for a new room: of the healthy nodes that are not draining, the one whose capacity is used least, or
 * null if there is none. So a full node gets a new room only if all are full.
 * A room weighs as much as a participant. Otherwise many rooms created at once would all land on one node before anyone
 * joins them.
 * Ties go to the lowest id, so that processes which choose at the same time agree.
 */
export function chooseNode(healthyIds: readonly string[], loads: ReadonlyMap<string, NodeLoad>): string | null {
  const used = (id: string) => {
    const load = loads.get(id);
    return load === undefined ? 0 : (load.sessions + load.rooms) / (load.capacity ?? CAPACITY_DEFAULT);
  };
  const [best] = healthyIds
    .filter((id) => loads.get(id)?.draining !== true)
    .sort((a, b) => used(a) - used(b) || (a < b ? -1 : 1));
  return best ?? null;
}
