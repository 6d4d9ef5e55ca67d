/** What a node carries, as the database counts it. */
export interface NodeLoad {
  rooms: number;
  /** Live sessions in those rooms. */
  sessions: number;
  /** It gets no new rooms. */
  draining: boolean;
}

/**
 * The node for a new room: the least loaded of those that are healthy and not being drained, or null when there is
 * none. A room weighs as much as a participant, so that many rooms that were made at once are spread before anybody is
 * in them. Among equals the first by name, so that processes which choose at the same time choose the same.
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
