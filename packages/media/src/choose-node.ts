/** The load of one media node, as the database counts it. */
export interface NodeLoad {
  rooms: number;
  /** Live sessions in those rooms. */
  sessions: number;
  /** A draining node gets no new rooms. */
  draining: boolean;
}

/**
 * Chooses the node for a new room: the least loaded healthy node that is not draining, or null if there is none.
 * A room weighs as much as a participant. Otherwise many rooms created at once would all land on one node before anyone
 * joins them.
 * Ties go to the lowest id, so that processes which choose at the same time agree.
 */
export function chooseNode(healthyIds: readonly string[], loads: ReadonlyMap<string, NodeLoad>): string | null {
  const weight = (id: string) => {
    const load = loads.get(id);
    return load === undefined ? 0 : load.sessions + load.rooms;
  };
  const [best] = healthyIds
    .filter((id) => loads.get(id)?.draining !== true)
    .sort((a, b) => weight(a) - weight(b) || (a < b ? -1 : 1));
  return best ?? null;
}
