import { createHmac } from 'node:crypto';
import { MediaError, type MediaRoom, type StreamReference } from '../media-node.js';
import { isJanusError, JANUS } from './janus-errors.js';
import type { JanusHandle } from './janus-handle.js';
import { objectsIn, textOf } from './janus-messages.js';

/**
 * The cap on a room's publishers, which counts established connections alone (default 3): high, because the database
 * counts participants.
 */
const PUBLISHERS_MAX = 100_000;

export interface JanusRoomOptions {
  adminKey: string;
  /** Most that one publisher may send, over all of its video, in bits per second. */
  videoBitrateMaxBps: number;
}

/**
 * The secret that a room is managed with: any process that knows the node's key can end the room, whoever made it.
 */
export function roomSecret(adminKey: string, roomId: string): string {
  return createHmac('sha256', adminKey).update(roomId).digest('hex');
}

/** Names of the handles that look into rooms; they are no feeds. */
export const PROBE_PREFIX = 'probe-';

/** What can be asked about rooms over one handle: Janus manual, "VideoRoom plug-in", synchronous requests. */
export function janusRooms(control: JanusHandle, { adminKey, videoBitrateMaxBps }: JanusRoomOptions) {
  const managed = (roomId: string) => ({ room: roomId, secret: roomSecret(adminKey, roomId) });
  const exists = async (roomId: string): Promise<boolean> =>
    (await control.request({ request: 'exists', room: roomId })).data['exists'] === true;

  return {
    exists,

    async ensure(roomId: string): Promise<void> {
      try {
        await control.request({
          request: 'create',
          admin_key: adminKey,
          ...managed(roomId),
          is_private: true,
          permanent: false,
          publishers: PUBLISHERS_MAX,
          notify_joining: false,
          audiolevel_event: false,
          audiocodec: 'opus',
          // Every browser knows VP8, and Janus prefers what stands first; H.264 is for devices that have nothing else.
          videocodec: 'vp8,h264',
          bitrate: videoBitrateMaxBps,
          bitrate_cap: true,
        });
      } catch (error) {
        if (!isJanusError(error, JANUS.roomExists)) throw error;
      }
    },

    async destroy(roomId: string): Promise<'destroyed' | 'absent'> {
      try {
        await control.request({ request: 'destroy', ...managed(roomId) });
      } catch (error) {
        if (isJanusError(error, JANUS.noSuchRoom)) return 'absent';
        throw error;
      }
      if (await exists(roomId)) throw new MediaError('refused', `The room ${roomId} is still there`);
      return 'destroyed';
    },

    async list(): Promise<MediaRoom[]> {
      const { data } = await control.request({ request: 'list', admin_key: adminKey });
      return objectsIn(data['list']).map((room) => ({
        roomId: textOf(room['room']),
        feeds: Number(room['num_participants'] ?? 0),
      }));
    },

    async feeds(roomId: string): Promise<string[]> {
      try {
        const { data } = await control.request({ request: 'listparticipants', ...managed(roomId) });
        const ids = objectsIn(data['participants']).map(({ id }) => textOf(id));
        return ids.filter((id) => !id.startsWith(PROBE_PREFIX));
      } catch (error) {
        if (isJanusError(error, JANUS.noSuchRoom)) return [];
        throw error;
      }
    },

    async removeFeed(roomId: string, feedId: string): Promise<'removed' | 'absent'> {
      try {
        await control.request({ request: 'kick', ...managed(roomId), id: feedId });
        return 'removed';
      } catch (error) {
        if (isJanusError(error, JANUS.noSuchRoom, JANUS.noSuchFeed)) return 'absent';
        throw error;
      }
    },

    async moderate(roomId: string, feedId: string, mid: string, muted: boolean): Promise<void> {
      await control.request({ request: 'moderate', ...managed(roomId), id: feedId, mid, mute: muted });
    },
  };
}

/**
 * The streams that somebody publishes in a room at this moment. Janus tells them to nobody but who joins, so `probe`,
 * a fresh handle, joins for a moment; nobody is told of it.
 */
export async function publishedStreams(probe: JanusHandle, roomId: string, name: string): Promise<StreamReference[]> {
  const joined = await probe.request({ request: 'join', ptype: 'publisher', room: roomId, id: PROBE_PREFIX + name });
  return objectsIn(joined.data['publishers']).flatMap((publisher) =>
    objectsIn(publisher['streams'])
      .filter((stream) => stream['disabled'] !== true)
      .map((stream) => ({ feedId: textOf(publisher['id']), mid: textOf(stream['mid']) })),
  );
}
