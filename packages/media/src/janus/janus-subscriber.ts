import { MediaError, type MediaSubscriber, type StreamReference, type SubscriberOffer } from '../media-node.js';
import type { JanusConnection } from './janus-connection.js';
import { isJanusError, JANUS } from './janus-errors.js';
import { JanusHandle, type PluginAnswer } from './janus-handle.js';
import { objectsIn, textOf } from './janus-messages.js';
import { JanusPeer } from './janus-peer.js';

/** How often a change is tried again because a stream went away between looking and asking. */
const TRIES_MAX = 3;

export interface JanusSubscriberOptions {
  roomId: string;
  label: string;
  offerWithinMs: number;
  /** The streams that somebody publishes in the room at this moment. */
  published: () => Promise<StreamReference[]>;
}

interface OutstandingOffer {
  /** Resolves with the answer, rejects when the time for it is over. */
  answered: Promise<void>;
  settle: (error?: MediaError) => void;
}

/** A handle that receives many streams over one peer connection (a multistream subscriber). */
export class JanusSubscriber extends JanusPeer implements MediaSubscriber {
  #joined = false;
  /** The media section of each stream that is received. */
  #sections = new Map<string, string>();
  #outstanding: OutstandingOffer | undefined;
  /** Changes, one after the other: browsers fail on the order of media sections otherwise. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(private readonly options: JanusSubscriberOptions) {
    super();
  }

  static async attach(connection: JanusConnection, options: JanusSubscriberOptions): Promise<JanusSubscriber> {
    const subscriber = new JanusSubscriber(options);
    subscriber.handle = await JanusHandle.attach(connection, options.label, subscriber);
    // The connection may have been lost meanwhile, before anybody could listen.
    subscriber.opened();
    return subscriber;
  }

  update(change: { add: StreamReference[]; remove: StreamReference[] }): Promise<SubscriberOffer | null> {
    const done = this.#turn.then(async () => {
      await this.#outstanding?.answered;
      this.opened();
      return this.#change(change);
    });
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async answer(sdp: string): Promise<void> {
    this.opened();
    const offer = this.#outstanding;
    if (offer === undefined) throw new MediaError('refused', 'There is no offer to answer');
    await this.change({ request: 'start' }, { type: 'answer', sdp });
    offer.settle();
    if (this.#outstanding === offer) this.#outstanding = undefined;
  }

  async selectLayer(
    subscriberMid: string,
    { spatial, temporal }: { spatial?: number | undefined; temporal?: number | undefined },
  ): Promise<void> {
    const handle = this.opened();
    const layer = {
      ...(spatial === undefined ? {} : { substream: spatial }),
      ...(temporal === undefined ? {} : { temporal }),
    };
    await handle.request({ request: 'configure', streams: [{ mid: subscriberMid, ...layer }] });
  }

  protected override end(error: MediaError): void {
    super.end(error);
    this.#outstanding?.settle(error);
  }

  async #change({
    add,
    remove,
  }: {
    add: StreamReference[];
    remove: StreamReference[];
  }): Promise<SubscriberOffer | null> {
    const removed = new Set(remove.map(keyOf));
    const unsubscribe = [...removed].flatMap((key) => {
      const section = this.#sections.get(key);
      return section === undefined ? [] : [{ sub_mid: section }];
    });
    // Janus would give a stream that is received already a second section.
    const wanted = new Map(add.map((stream) => [keyOf(stream), stream]));
    for (const key of this.#sections.keys()) if (!removed.has(key)) wanted.delete(key);

    for (let tries = 1; ; tries += 1) {
      if (wanted.size === 0 && unsubscribe.length === 0) return null;
      try {
        return this.#offerIn(await this.#request([...wanted.values()], unsubscribe));
      } catch (error) {
        if (!isJanusError(error, JANUS.noSuchFeed) || tries === TRIES_MAX) throw error;
        // Janus refuses the whole of a change that names one missing stream, and tells which in words only.
        const published = new Set((await this.options.published()).map(keyOf));
        for (const key of wanted.keys()) if (!published.has(key)) wanted.delete(key);
      }
    }
  }

  async #request(add: StreamReference[], unsubscribe: { sub_mid: string }[]): Promise<PluginAnswer> {
    const streams = add.map(({ feedId, mid }) => ({ feed: feedId, mid }));
    if (this.#joined) {
      return this.change({
        request: 'update',
        ...(streams.length === 0 ? {} : { subscribe: streams }),
        ...(unsubscribe.length === 0 ? {} : { unsubscribe }),
      });
    }
    // Without automatic updates Janus makes no offers by itself, which would collide with those that were asked for.
    const join = { request: 'join', ptype: 'subscriber', room: this.options.roomId, autoupdate: false, streams };
    const answer = await this.change(join);
    this.#joined = true;
    return answer;
  }

  #offerIn({ data, sdp }: PluginAnswer): SubscriberOffer | null {
    if (data['videoroom'] === 'updating') throw new MediaError('refused', 'An earlier offer is not answered yet');
    // Without an offer nothing has changed, and nothing is listed either.
    if (sdp === undefined) return null;
    const streams = objectsIn(data['streams'])
      .filter((stream) => stream['active'] === true && stream['feed_id'] !== undefined)
      .map((stream) => ({
        feedId: textOf(stream['feed_id']),
        mid: textOf(stream['feed_mid']),
        subscriberMid: textOf(stream['mid']),
      }));
    this.#sections = new Map(streams.map((stream) => [keyOf(stream), stream.subscriberMid]));
    this.#outstanding = outstandingOffer(this.options.offerWithinMs);
    return { sdp, streams };
  }
}

function outstandingOffer(withinMs: number): OutstandingOffer {
  let settle: OutstandingOffer['settle'] = () => undefined;
  const answered = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new MediaError('timeout', 'An offer was not answered in time')), withinMs);
    settle = (error) => {
      clearTimeout(timer);
      if (error === undefined) resolve();
      else reject(error);
    };
  });
  answered.catch(() => undefined);
  return { answered, settle };
}

const keyOf = ({ feedId, mid }: StreamReference): string => JSON.stringify([feedId, mid]);
