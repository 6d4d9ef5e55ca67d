import { placeRoom } from '@callplane/db';
import type { Deps } from '../deps.js';
import type { RoomView } from '../rooms/room-view.js';
import type { Rooms } from '../rooms/rooms.js';

/**
 * Gives rooms without a working media server another one: those that have none, and those whose server has been away
 * for too long. Of several instances that see it, one moves the room; all of them follow.
 */
export async function moveRooms(
  deps: Pick<Deps, 'database' | 'logger' | 'places'>,
  rooms: Rooms,
  deadMs: number,
): Promise<void> {
  if (!deps.places.anyUp) return;
  for (const view of [...rooms.all]) {
    if (needsPlace(deps.places, view, deadMs)) await move(deps, rooms, view);
  }
}

function needsPlace(places: Deps['places'], view: RoomView, deadMs: number): boolean {
  const { snapshot } = view;
  if (snapshot === null || view.isClosed || view.size === 0) return false;
  const { mediaNodeId } = snapshot;
  return mediaNodeId === null || (places.up(mediaNodeId) === null && places.downForMs(mediaNodeId) > deadMs);
}

async function move(
  { database, logger, places }: Pick<Deps, 'database' | 'logger' | 'places'>,
  rooms: Rooms,
  view: RoomView,
): Promise<void> {
  const { snapshot } = view;
  const to = await places.pick();
  if (snapshot === null || to === null || to === snapshot.mediaNodeId) return;
  const { mediaNodeId, mediaGeneration } = snapshot;
  const placement = await placeRoom(database, view.roomId, { mediaNodeId, mediaGeneration }, to);
  if (placement.mediaGeneration === mediaGeneration + 1 && placement.mediaNodeId === to) {
    logger.info('room moved', { roomId: view.roomId, from: mediaNodeId, to });
  }
  await rooms.changed(view.roomId, false);
}
