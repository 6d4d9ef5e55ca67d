import { createHmac, randomUUID } from 'node:crypto';
import { isForwarded } from '@callplane/core';
import {
  MediaError,
  type ForwardedStream,
  type MediaRoom,
  type RoomRecording,
  type StreamReference,
} from '../types.js';
import { janusForwards } from './forwards.js';
import { JanusHandle, type HandleSession } from './handle.js';
import { isJanusError, JANUS, objectsIn, textOf } from './messages.js';
import { PROBE_ROOM } from './probe.js';

/**
 * The cap on a room's publishers, of which Janus counts only established connections (its default is 3). It is high
 * because the database limits participants.
 */
const PUBLISHERS_MAX = 100_000;

/** Packets of 20 ms whose average level decides whether a track carries speech: half a second. */
const AUDIO_ACTIVE_PACKETS = 25;
/** The average level of speech, in dBov without its sign. Chromium's noise suppression leaves about 70 to 90. */
const TALKING_BELOW_DBOV = 50;

/** Upper limit for all video of one publisher together, in bits per second. */
const VIDEO_BITRATE_MAX_BPS = 2_500_000;

/**
 * Derives the secret that manages a room. Any process with the node's key can destroy the room, even if another process
 * created it.
 */
function roomSecret(adminKey: string, roomId: string): string {
  return createHmac('sha256', adminKey).update(roomId).digest('hex');
}

/** Prefix of the ids with which probe handles join rooms. `feeds()` leaves these ids out. */
const PROBE_PREFIX = 'probe-';

/** The room requests over one handle: Janus manual, "VideoRoom plug-in", synchronous requests. */
export function janusRooms(control: JanusHandle, adminKey: string) {
  const managed = (roomId: string) => ({ room: roomId, secret: roomSecret(adminKey, roomId) });
  const exists = async (roomId: string): Promise<boolean> =>
    (await control.request({ request: 'exists', room: roomId })).data['exists'] === true;

  const feeds = async (roomId: string): Promise<string[]> => {
    try {
      const { data } = await control.request({ request: 'listparticipants', ...managed(roomId) });
      const ids = objectsIn(data['participants']).map(({ id }) => textOf(id));
      return ids.filter((id) => !id.startsWith(PROBE_PREFIX));
    } catch (error) {
      if (isJanusError(error, JANUS.noSuchRoom)) return [];
      throw error;
    }
  };
  const forwards = janusForwards(control, adminKey, managed, feeds);

  return {
    forwards,

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
          // Janus sends these events to every publisher of the room; see docs/decisions/0011-the-call-path.md.
          audiolevel_event: true,
          audio_active_packets: AUDIO_ACTIVE_PACKETS,
          audio_level_average: TALKING_BELOW_DBOV,
          audiocodec: 'opus',
          // Every browser supports VP8, and Janus prefers the first codec of an offer. The others are sent by publishers
          // that offer them alone.
          videocodec: 'vp8,vp9,h264,av1',
          bitrate: VIDEO_BITRATE_MAX_BPS,
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
      if (await exists(roomId))
        throw new MediaError('refused', `The room ${roomId} still exists after its destruction`);
      return 'destroyed';
    },

    /** Without the room of the probes. */
    async list(): Promise<MediaRoom[]> {
      const { data } = await control.request({ request: 'list', admin_key: adminKey });
      const rooms = objectsIn(data['list']).map((room) => ({
        roomId: textOf(room['room']),
        feeds: Number(room['num_participants'] ?? 0),
      }));
      return rooms.filter(({ roomId }) => roomId !== PROBE_ROOM);
    },

    feeds,

    async removeFeed(roomId: string, feedId: string): Promise<'removed' | 'absent'> {
      // Janus 1.4.1 leaks four descriptors of a feed that it receives from another node and that is kicked.
      if (isForwarded(feedId)) return forwards.stopReceiving(roomId, feedId);
      try {
        await control.request({ request: 'kick', ...managed(roomId), id: feedId });
        return 'removed';
      } catch (error) {
        if (isJanusError(error, JANUS.noSuchRoom, JANUS.noSuchFeed)) return 'absent';
        throw error;
      }
    },

    /**
     * Starts or stops the recording of all streams of a room.
     * @param how null stops it.
     * @returns false if there is no such room
     */
    async record(roomId: string, how: RoomRecording | null): Promise<boolean> {
      try {
        const { folder, keyFrameSeconds = 0 } = how ?? {};
        const into = folder === undefined ? {} : { new_rec_dir: folder };
        await control.request({ request: 'edit', ...managed(roomId), ...into, new_fir_freq: keyFrameSeconds });
        await control.request({ request: 'enable_recording', ...managed(roomId), record: how !== null });
        return true;
      } catch (error) {
        if (isJanusError(error, JANUS.noSuchRoom)) return false;
        throw error;
      }
    },

    async moderate(roomId: string, feedId: string, mid: string, muted: boolean): Promise<void> {
      await control.request({ request: 'moderate', ...managed(roomId), id: feedId, mid, mute: muted });
    },
  };
}

/**
 * The streams that a room's publishers send at this moment. Janus lists them only to a handle that joins. So a probe, a
 * handle of its own, joins for a moment; the room does not notify its participants.
 */
export async function publishedStreams(session: HandleSession, roomId: string): Promise<StreamReference[]> {
  return [...(await joinedStreams(session, roomId))].flatMap(([feedId, streams]) =>
    streams.filter((stream) => stream['disabled'] !== true).map((stream) => ({ feedId, mid: textOf(stream['mid']) })),
  );
}

type JanusStream = Readonly<Record<string, unknown>>;

/** All streams of the feeds that publish something, in the order of their media sections. */
async function joinedStreams(session: HandleSession, roomId: string): Promise<Map<string, JanusStream[]>> {
  const id = `${PROBE_PREFIX}${randomUUID()}`;
  const probe = new JanusHandle(session, await session.attach(id));
  try {
    const joined = await probe.request({ request: 'join', ptype: 'publisher', room: roomId, id });
    return new Map(
      objectsIn(joined.data['publishers']).map((publisher) => [
        textOf(publisher['id']),
        objectsIn(publisher['streams']),
      ]),
    );
  } finally {
    await probe.detach();
  }
}

/**
 * The streams of a feed, in the order of its media sections.
 * @throws MediaError `no_such_feed`
 */
export async function streamsOfFeed(
  session: HandleSession,
  roomId: string,
  feedId: string,
): Promise<ForwardedStream[]> {
  const streams = (await joinedStreams(session, roomId)).get(feedId);
  if (streams === undefined) throw new MediaError('no_such_feed', `${feedId} publishes nothing`);
  return streams.map((stream) => streamOf(stream));
}

/** Janus wants a codec even for a section that sends nothing. Each stream keeps its place, which tells its packets. */
function streamOf({ mid, type, codec, ...rest }: Readonly<Record<string, unknown>>): ForwardedStream {
  const kind = type === 'audio' ? 'audio' : 'video';
  return { mid: textOf(mid), kind, codec: textOf(codec) || (kind === 'audio' ? 'opus' : 'vp8'), rest };
}
