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
import { configOf, withDatabase, type Cli } from './cli.js';
import { CommandError, UsageError } from './failure.js';
import { addCommand, print, printList, quoted, type OutputOptions } from './output.js';

export function mediaCommands(cli: Cli): Command {
  const media = new Command('media').description('Media servers: what they carry, and taking one out of service');
  addCommand(media, 'list', 'List the media servers', 'rtc media list').action((options: OutputOptions) =>
    withDatabase(cli, async ({ hot }) => {
      printList(cli, options, await listMediaNodes(hot), (row) => [
        row.id,
        row.state ?? 'unknown',
        row.draining ? 'draining' : 'in service',
        `${row.rooms} rooms`,
        `${row.sessions} sessions`,
        row.checkedAt === null ? '' : `seen ${formatTimestamp(row.checkedAt)}`,
      ]);
    }),
  );
  addCommand(media, 'drain <node>', 'Place no new rooms on a media server', 'rtc media drain m1 --move')
    .option('--move', 'also move its rooms to others now; whoever is in them connects again by itself')
    .action((nodeId: string, options: OutputOptions & { move?: true }) => drain(cli, nodeId, options));
  const undrainDescription = 'Place rooms on a media server again';
  addCommand(media, 'undrain <node>', undrainDescription, 'rtc media undrain m1').action(
    (nodeId: string, options: OutputOptions) =>
      withDatabase(cli, async ({ hot }) => {
        const { rooms, sessions } = await nodeOf(hot, nodeId);
        await setNodeDraining(hot, nodeId, false);
        print(cli, options, { id: nodeId, draining: false, rooms, sessions }, `${nodeId} takes rooms again.`);
      }),
  );
  return media;
}

function drain(cli: Cli, nodeId: string, options: OutputOptions & { move?: true }): Promise<void> {
  return withDatabase(cli, async (database) => {
    const { hot } = database;
    await nodeOf(hot, nodeId);
    await setNodeDraining(hot, nodeId, true);
    const movedRoomIds = options.move === true ? await moveRooms(database, nodeId) : [];
    await tellRooms(cli, movedRoomIds);
    const { rooms, sessions } = await nodeOf(hot, nodeId);
    const moved = movedRoomIds.length;
    print(
      cli,
      options,
      { id: nodeId, draining: true, moved, rooms, sessions },
      `${nodeId} takes no new rooms.${options.move === true ? ` ${moved} rooms were moved.` : ''} ` +
        `It carries ${rooms} rooms with ${sessions} sessions.`,
    );
  });
}

/** Those that are ending stay: their clean-up looks for them where they are. */
async function moveRooms(database: Database, nodeId: string): Promise<string[]> {
  // Loaded when needed: it takes longer than most commands do.
  const { chooseNode } = await import('@callplane/media');
  const nodes = await listMediaNodes(database.hot);
  const healthy = nodes.filter(({ id, state }) => id !== nodeId && state === 'up').map(({ id }) => id);
  const loads = new Map(nodes.map((node) => [node.id, { ...node }]));
  const moved: string[] = [];
  for (const room of await roomsOnNode(database.hot, nodeId)) {
    if (room.status === 'ending') continue;
    const target = chooseNode(healthy, loads);
    if (target === null) {
      throw new CommandError(
        `No other media server is up and in service: ${nodeId} takes no new rooms, and keeps its own.`,
      );
    }
    const placement = await placeRoom(database, room.roomId, room, target);
    if (placement.mediaNodeId === nodeId) continue;
    moved.push(room.roomId);
    const load = loads.get(target);
    if (load !== undefined) load.rooms += 1;
  }
  return moved;
}

/** Without Redis the gateways see within seconds that their rooms have moved. */
async function tellRooms(cli: Cli, roomIds: readonly string[]): Promise<void> {
  const { REDIS_URL } = configOf(cli);
  if (REDIS_URL === undefined || roomIds.length === 0) return;
  const { publishRoomsChangedOnce } = await import('@callplane/queue');
  await publishRoomsChangedOnce(REDIS_URL, roomIds);
}

async function nodeOf(db: Database['hot'], nodeId: string): Promise<MediaNodeRow> {
  const node = (await listMediaNodes(db)).find(({ id }) => id === nodeId);
  if (node === undefined) {
    throw new UsageError(`There is no media server ${quoted(nodeId)}: "rtc media list" shows those there are.`);
  }
  return node;
}
