import {
  listMediaNodes,
  placeRoom,
  removeRoomNode,
  roomsOnNode,
  setNodeDraining,
  unplaceEmptyRooms,
  type Database,
  type MediaNodeRow,
} from '@callplane/db';
import { pause } from '@callplane/runtime';
import { configOf, notifyRooms, type Cli } from '../cli.js';
import { CommandError } from '../failure.js';
import { notFound } from '../options.js';

/** How often a waiting drain looks at the server. */
const LOOK_EVERY_MS = 1000;

/** @throws UsageError if no media server has this name */
export async function serverOf(db: Database['sql'], nodeId: string): Promise<MediaNodeRow> {
  const node = (await listMediaNodes(db)).find(({ id }) => id === nodeId);
  if (node === undefined) throw notFound('Media server', nodeId, 'media list');
  return node;
}

interface DrainSettings {
  waitSeconds: number | null;
  move: boolean;
  signal?: AbortSignal;
}

/**
 * Takes a media server out of service. New rooms go to other servers from now on.
 * @returns how many rooms with participants were moved, and how many the server still carries
 */
export async function drainServer(
  cli: Cli,
  database: Database,
  nodeId: string,
  { waitSeconds, move, signal = new AbortController().signal }: DrainSettings,
) {
  const { prisma, sql } = database;
  await serverOf(sql, nodeId);
  await setNodeDraining(prisma, nodeId, true);
  if (waitSeconds !== null) await waitUntilEmpty(cli, database, nodeId, waitSeconds * 1000, signal);
  const movedRooms = move ? await moveRooms(database, nodeId) : [];
  await notifyRooms(configOf(cli), movedRooms);
  const { rooms, sessions } = await serverOf(sql, nodeId);
  return { moved: movedRooms.length, rooms, sessions };
}

/** Rooms without participants leave at once: their next participant places them elsewhere. */
async function waitUntilEmpty(
  cli: Cli,
  { prisma, sql }: Database,
  nodeId: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const endMs = cli.clock.now().getTime() + waitMs;
  for (;;) {
    await unplaceEmptyRooms(prisma, nodeId);
    const { sessions } = await serverOf(sql, nodeId);
    if (sessions === 0 || signal.aborted || cli.clock.now().getTime() >= endMs) return;
    await pause(LOOK_EVERY_MS, signal);
  }
}

/**
 * Moves the rooms of a node to other nodes, and takes it off the ones that use it besides. Rooms that are ending stay, because their clean-up searches for them on
 * this node.
 * @returns the rooms with their versions after the move
 */
async function moveRooms(database: Database, nodeId: string) {
  // Imported on demand: loading this package takes longer than most commands.
  const { chooseNode } = await import('@callplane/media');
  const nodes = await listMediaNodes(database.sql);
  const region = nodes.find(({ id }) => id === nodeId)?.region ?? null;
  const healthy = nodes.filter(({ id, state }) => id !== nodeId && state === 'up').map(({ id }) => id);
  const loads = new Map(nodes.map((node) => [node.id, { ...node }]));
  // Sessions of rooms that use the server besides their own move within their rooms.
  const moved = await removeRoomNode(database.sql, nodeId, null);
  for (const room of await roomsOnNode(database.prisma, nodeId)) {
    if (room.status === 'ending') continue;
    const target = chooseNode(healthy, loads, region);
    if (target === null) {
      const state = `${nodeId} takes no new rooms, and keeps its own`;
      throw new CommandError(`No other media server is up and in service: ${state}.`);
    }
    const placement = await placeRoom(database.sql, room.roomId, room, target);
    if (placement.mediaNodeId === nodeId) continue;
    moved.push({ roomId: room.roomId, version: placement.version });
    const load = loads.get(target);
    if (load !== undefined) load.rooms += 1;
  }
  return moved;
}
