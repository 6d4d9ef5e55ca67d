import { placeRoom, type Database } from '@callplane/db';
import type { Logger } from '@callplane/runtime';
import type { Room } from '../../rooms/room.js';
import type { Rooms } from '../../rooms/rooms.js';
import type { MediaPlaces } from './media-places.js';

export interface MoveRoomsDeps {
  database: Database;
  logger: Logger;
  places: MediaPlaces;
}

/**
 * Moves rooms to a working media server: rooms that have none, and rooms whose media server has been down for longer
 * than `deadMs`. If several instances try, one moves the room and all of them follow.
 */
export async function moveRooms(deps: MoveRoomsDeps, rooms: Rooms, deadMs: number): Promise<void> {
  if (!deps.places.anyUp) return;
  for (const room of [...rooms.all]) if (needsPlace(deps.places, room, deadMs)) await move(deps, rooms, room);
}

function needsPlace(places: MediaPlaces, room: Room, deadMs: number): boolean {
  const { state } = room;
  if (state === null || room.isClosed || room.size === 0) return false;
  const { mediaNodeId } = state;
  return mediaNodeId === null || (places.up(mediaNodeId) === null && places.downForMs(mediaNodeId) > deadMs);
}

async function move({ database, logger, places }: MoveRoomsDeps, rooms: Rooms, room: Room): Promise<void> {
  const { roomId, state } = room;
  const to = await places.pick();
  if (state === null || to === null || to === state.mediaNodeId) return;
  const { mediaNodeId, mediaGeneration } = state;
  const placement = await placeRoom(database, roomId, { mediaNodeId, mediaGeneration }, to);
  if (placement.mediaGeneration === mediaGeneration + 1 && placement.mediaNodeId === to) {
    logger.info('room moved', { roomId, from: mediaNodeId, to });
  }
  await rooms.changed(roomId);
}
