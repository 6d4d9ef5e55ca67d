import { formatTimestamp } from '@callplane/core';
import {
  listMediaNodes,
  placeRoom,
  roomsOnNode,
  setNodeDraining,
  type Database,
  type MediaNodeRow,
} from '@callplane/db';
import { Command } from 'commander';
import { configOf, redisOf, withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { addCommand, column, print, printList, quoted, type OutputOptions } from './output.js';

export function mediaCommands(cli: Cli): Command {
  const media = new Command('media').description('Media servers: their load, and how to take one out of service');
  addCommand(media, 'list', 'List the media servers', 'rtc media list').action((options: OutputOptions) =>
    withDatabase(cli, async ({ sql }) => {
      const seen = ({ checkedAt }: MediaNodeRow) => (checkedAt === null ? '' : formatTimestamp(checkedAt));
      printList(cli, options, await listMediaNodes(sql), [
        column('SERVER', (row) => row.id),
        column('STATE', (row) => row.state ?? 'unknown'),
        column('SERVICE', (row) => (row.draining ? 'draining' : 'in service')),
        column(
          'ROOMS',
          (row) => String(row.rooms),
          (row) => `${row.rooms} rooms`,
        ),
        column(
          'SESSIONS',
          (row) => String(row.sessions),
          (row) => `${row.sessions} sessions`,
        ),
        column('SEEN', seen, (row) => (row.checkedAt === null ? '' : `seen ${seen(row)}`)),
      ]);
    }),
  );
  addCommand(media, 'drain <node>', 'Place no new rooms on a media server', 'rtc media drain m1 --move')
    .option('--move', 'also move its rooms to other media servers now; their clients reconnect automatically')
    .action((nodeId: string, options: OutputOptions & { move?: true }) => drain(cli, nodeId, options));
  const undrainDescription = 'Place rooms on a media server again';
  addCommand(media, 'undrain <node>', undrainDescription, 'rtc media undrain m1').action(
    (nodeId: string, options: OutputOptions) =>
      withDatabase(cli, async ({ sql }) => {
        const { rooms, sessions } = await nodeOf(sql, nodeId);
        await setNodeDraining(sql, nodeId, false);
        print(cli, options, { id: nodeId, draining: false, rooms, sessions }, `${nodeId} takes rooms again.`);
      }),
  );
  return media;
}

function drain(cli: Cli, nodeId: string, options: OutputOptions & { move?: true }): Promise<void> {
  return withDatabase(cli, async (database) => {
    const { sql } = database;
    await nodeOf(sql, nodeId);
    await setNodeDraining(sql, nodeId, true);
    const movedRooms = options.move === true ? await moveRooms(database, nodeId) : [];
    await notifyRooms(cli, movedRooms);
    const { rooms, sessions } = await nodeOf(sql, nodeId);
    const moved = movedRooms.length;
    print(
      cli,
      options,
      { id: nodeId, draining: true, moved, rooms, sessions },
      `${nodeId} takes no new rooms.${options.move === true ? ` ${moved} rooms were moved.` : ''} ` +
        `It carries ${rooms} rooms with ${sessions} sessions.`,
    );
  });
}

interface MovedRoom {
  roomId: string;
  /** The room's version after the move. */
  version: number;
}

/**
 * Moves the rooms of a node to other nodes. Rooms that are ending stay, because their clean-up searches for them on
 * this node.
 */
async function moveRooms(database: Database, nodeId: string): Promise<MovedRoom[]> {
  // Imported on demand: loading this package takes longer than most commands.
  const { chooseNode } = await import('@callplane/media');
  const nodes = await listMediaNodes(database.sql);
  const healthy = nodes.filter(({ id, state }) => id !== nodeId && state === 'up').map(({ id }) => id);
  const loads = new Map(nodes.map((node) => [node.id, { ...node }]));
  const moved: MovedRoom[] = [];
  for (const room of await roomsOnNode(database.sql, nodeId)) {
    if (room.status === 'ending') continue;
    const target = chooseNode(healthy, loads);
    if (target === null) {
      throw new CommandError(
        `No other media server is up and in service: ${nodeId} takes no new rooms, and keeps its own.`,
      );
    }
    const placement = await placeRoom(database, room.roomId, room, target);
    if (placement.mediaNodeId === nodeId) continue;
    moved.push({ roomId: room.roomId, version: placement.version });
    const load = loads.get(target);
    if (load !== undefined) load.rooms += 1;
  }
  return moved;
}

/** Notifies the gateways that rooms have moved. Without Redis they notice it within seconds. */
async function notifyRooms(cli: Cli, rooms: readonly MovedRoom[]): Promise<void> {
  const redis = redisOf(configOf(cli));
  if (redis === undefined || rooms.length === 0) return;
  const { publishRoomsChangedOnce } = await import('@callplane/queue');
  await publishRoomsChangedOnce(redis, rooms);
}

async function nodeOf(db: Database['sql'], nodeId: string): Promise<MediaNodeRow> {
  const node = (await listMediaNodes(db)).find(({ id }) => id === nodeId);
  if (node === undefined) {
    throw new UsageError(`Media server ${quoted(nodeId)} not found. "rtc media list" lists media servers.`);
  }
  return node;
}
