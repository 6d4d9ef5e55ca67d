import { createHmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { MediaError, type ForwardedStream, type RemoteFeed } from '../types.js';
import type { JanusHandle } from './handle.js';
import { isJanusError, JANUS, objectsIn, textOf } from './messages.js';

/** RFC 4568: 16 bytes of key and 14 of salt. */
const SRTP_KEY_BYTES = 30;
const SRTP = { srtp_suite: 80 } as const;
/** Pauses before Janus is asked again whether a new feed is in its room, in milliseconds. */
const LISTED_AFTER_MS = [0, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];

/** Any process with the nodes' key derives the same SRTP key, so no row holds one. A name is never used twice. */
function srtpKey(adminKey: string, toNodeId: string, name: string): string {
  const digest = createHmac('sha512', adminKey).update(`forward\n${toNodeId}\n${name}`).digest();
  return digest.subarray(0, SRTP_KEY_BYTES).toString('base64');
}

type Managed = (roomId: string) => { room: string; secret: string };
type ListFeeds = (roomId: string) => Promise<string[]>;

/** Requests about feeds that one node forwards to another: Janus manual, "VideoRoom plug-in", remote publishers. */
export function janusForwards(control: JanusHandle, adminKey: string, managed: Managed, listFeeds: ListFeeds) {
  /** @returns `absent` if the room, the feed or the forward does not exist */
  const remove = async (body: { request: string } & Record<string, unknown>): Promise<'removed' | 'absent'> => {
    try {
      await control.request(body);
      return 'removed';
    } catch (error) {
      if (isJanusError(error, JANUS.noSuchRoom, JANUS.noSuchFeed)) return 'absent';
      throw error;
    }
  };

  /**
   * Janus answers before the thread of a new feed has put it into the room. A removal in between finds no feed, and the
   * feed keeps its ports.
   */
  const untilListed = async (roomId: string, name: string): Promise<void> => {
    for (const pauseMs of LISTED_AFTER_MS) {
      if (pauseMs > 0) await delay(pauseMs);
      if ((await listFeeds(roomId)).includes(name)) return;
    }
    throw new MediaError('no_such_feed', `Janus does not list ${name}`);
  };

  return {
    /** Adds a feed to the room, which the node receives from another one on `port` and, for RTCP, `port + 1`. */
    async receive(
      roomId: string,
      { name, port, extensionIds }: RemoteFeed,
      streams: readonly ForwardedStream[],
      toNodeId: string,
    ): Promise<void> {
      const extension = ({ mid, kind }: ForwardedStream) => ({
        [kind === 'audio' ? 'audiolevel_ext_id' : 'videoorient_ext_id']: extensionIds.get(mid),
      });
      await control.request({
        request: 'add_remote_publisher',
        ...managed(roomId),
        ...{ id: name, port, rtcp_port: port + 1, ...SRTP, srtp_crypto: srtpKey(adminKey, toNodeId, name) },
        streams: streams.map((stream, at) => ({
          ...stream.rest,
          ...extension(stream),
          ...{ type: stream.kind, codec: stream.codec, mid: String(at), mindex: at },
        })),
      });
      await untilListed(roomId, name);
    },

    /** Sends all layers of all streams of a feed, also of streams that it gets later. */
    async send(
      roomId: string,
      feedId: string,
      { name, port }: RemoteFeed,
      toNodeId: string,
      host: string,
    ): Promise<void> {
      await control.request({
        request: 'publish_remotely',
        admin_key: adminKey,
        ...managed(roomId),
        ...{ publisher_id: feedId, remote_id: name, host, port, rtcp_port: port + 1, ...SRTP },
        srtp_crypto: srtpKey(adminKey, toNodeId, name),
      });
    },

    /** The forwards of a feed to other nodes. Empty if there is no such feed. */
    async sent(roomId: string, feedId: string): Promise<string[]> {
      try {
        const { data } = await control.request({ request: 'listremotes', ...managed(roomId), publisher_id: feedId });
        return objectsIn(data['list']).map((one) => textOf(one['remote_id']));
      } catch (error) {
        if (isJanusError(error, JANUS.noSuchRoom, JANUS.noSuchFeed)) return [];
        throw error;
      }
    },

    stopReceiving: (roomId: string, name: string) =>
      remove({ request: 'remove_remote_publisher', ...managed(roomId), id: name }),

    stopSending: (roomId: string, feedId: string, name: string) =>
      remove({ request: 'unpublish_remotely', ...managed(roomId), publisher_id: feedId, remote_id: name }),
  };
}
