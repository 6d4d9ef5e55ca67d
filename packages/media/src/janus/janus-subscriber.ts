import {
  MediaError,
  type CarriedSection,
  type CarriedStream,
  type MediaSubscriber,
  type StreamReference,
  type StreamSettings,
  type SubscriberOffer,
  type SwitchOutcome,
} from '../media-node.js';
import { isJanusError, JANUS } from './janus-errors.js';
import { JanusHandle, type PluginAnswer } from './janus-handle.js';
import { objectsIn } from './janus-messages.js';
import { JanusPeer } from './janus-peer.js';
import type { JanusSession } from './janus-session.js';
import { keyOf, sectionsIn, settingsOf, streamsIn } from './janus-streams.js';

/** No section has this name: Janus numbers them. */
const NO_SECTION = 'none';

interface SubscriberChange {
  add: (StreamReference & StreamSettings)[];
  remove: StreamReference[];
}

/** How often a change is tried if a stream ends between the lookup and the request. */
const TRIES_MAX = 3;

export interface JanusSubscriberOptions {
  roomId: string;
  label: string;
  offerWithinMs: number;
  /** The streams that the room's publishers send at this moment. */
  published: () => Promise<StreamReference[]>;
}

interface OutstandingOffer {
  /** Resolves with the answer; rejects when the deadline for it passes. */
  answered: Promise<void>;
  finish: (error?: MediaError) => void;
}

/** A handle that receives many streams over one peer connection (a multistream subscriber). */
export class JanusSubscriber extends JanusPeer implements MediaSubscriber {
  #joined = false;
  /** The received streams with their media sections. */
  #carried: CarriedStream[] = [];
  #outstanding: OutstandingOffer | undefined;
  /** Runs changes one after the other: concurrent ones fail in browsers on the order of media sections. */
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(private readonly options: JanusSubscriberOptions) {
    super();
  }

  static async attach(session: JanusSession, options: JanusSubscriberOptions): Promise<JanusSubscriber> {
    const subscriber = new JanusSubscriber(options);
    subscriber.handle = await JanusHandle.attach(session, options.label, subscriber);
    // The connection may have ended before the handle had a listener.
    subscriber.opened();
    return subscriber;
  }

  /** Takes over a subscriber of a claimed session, whose last offer is answered. */
  static adopt(
    session: JanusSession,
    options: JanusSubscriberOptions,
    handleId: number,
    streams: readonly CarriedStream[],
  ): JanusSubscriber {
    const subscriber = new JanusSubscriber(options);
    subscriber.handle = JanusHandle.adopt(session, handleId, subscriber);
    subscriber.#joined = true;
    subscriber.#carried = [...streams];
    return subscriber;
  }

  update(change: SubscriberChange): Promise<SubscriberOffer | null> {
    return this.#inTurn(() => this.#change(change));
  }

  switch(changes: CarriedStream[]): Promise<SwitchOutcome> {
    return this.#inTurn(async () => {
      const absent: StreamReference[] = [];
      let present = changes;
      const answer = await this.#whileAbsent(
        () => {
          const streams = present.map(({ feedId, mid, subscriberMid }) => ({
            feed: feedId,
            mid,
            sub_mid: subscriberMid,
          }));
          return streams.length === 0 ? null : this.change({ request: 'switch', streams });
        },
        (isPublished) => {
          absent.push(...present.filter((one) => !isPublished(one)));
          present = present.filter(isPublished);
        },
      );
      if (answer === null) return { streams: this.#carried, absent, offer: null };
      // A section that was idle needs a negotiation: Janus then answers `updated`, with an offer, before `switched`.
      const offer = this.#offerIn(answer);
      this.#carried = offer?.streams ?? streamsIn(answer);
      await this.configure(present.map(({ subscriberMid }) => ({ subscriberMid })));
      return { streams: this.#carried, absent, offer };
    });
  }

  listSections(): Promise<CarriedSection[]> {
    return this.#inTurn(async () => {
      // Janus has no request for it. It answers the switch of a section that does not exist with the list, but only if
      // the stream exists.
      let [stream]: StreamReference[] = this.#carried;
      stream ??= (await this.options.published())[0];
      const answer = await this.#whileAbsent(
        () => {
          if (stream === undefined) return null;
          const streams = [{ feed: stream.feedId, mid: stream.mid, sub_mid: NO_SECTION }];
          return this.change({ request: 'switch', streams });
        },
        (_, published) => {
          [stream] = published;
        },
      );
      // Without any stream in the room, no section carries one.
      const sections = answer === null ? [] : sectionsIn(answer);
      this.#carried = sections.map(({ feedId, mid, subscriberMid }) => ({ feedId, mid, subscriberMid }));
      return sections;
    });
  }

  restart(): Promise<string> {
    return this.#inTurn(async () => {
      const offer = this.#offerIn(await this.change({ request: 'configure', restart: true }));
      if (offer === null) throw new MediaError('refused', 'Janus did not restart ICE');
      return offer.sdp;
    });
  }

  async answer(sdp: string): Promise<void> {
    this.opened();
    const offer = this.#outstanding;
    if (offer === undefined) throw new MediaError('refused', 'There is no offer to answer');
    await this.change({ request: 'start' }, { type: 'answer', sdp });
    offer.finish();
    if (this.#outstanding === offer) this.#outstanding = undefined;
  }

  async configure(settings: (StreamSettings & { subscriberMid: string })[]): Promise<void> {
    const streams = settings.map(({ subscriberMid, ...rest }) => ({ mid: subscriberMid, ...settingsOf(rest) }));
    if (streams.length > 0) await this.change({ request: 'configure', streams });
  }

  async requestKeyFrames(subscriberMids: readonly string[]): Promise<void> {
    const withPause = (paused: boolean) =>
      this.configure(subscriberMids.map((subscriberMid) => ({ subscriberMid, paused })));
    // Janus asks for a key frame when a section goes on, and continues its sequence numbers without a gap. Both requests
    // are made at once, so that no other change comes in between.
    await Promise.all([withPause(true), withPause(false)]);
  }

  protected override end(error: MediaError): void {
    super.end(error);
    this.#outstanding?.finish(error);
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(async () => {
      await this.#outstanding?.answered;
      this.opened();
      return change();
    });
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #change({ add, remove }: SubscriberChange): Promise<SubscriberOffer | null> {
    const removed = new Set(remove.map(keyOf));
    const unsubscribe = this.#carried
      .filter((stream) => removed.has(keyOf(stream)))
      .map(({ subscriberMid }) => ({ sub_mid: subscriberMid }));
    // Janus would open a second section for a stream that is already received.
    const added = new Map(add.map((stream) => [keyOf(stream), stream]));
    for (const key of this.#carried.map(keyOf)) if (!removed.has(key)) added.delete(key);
    const answer = await this.#whileAbsent(
      () => (added.size === 0 && unsubscribe.length === 0 ? null : this.#request([...added.values()], unsubscribe)),
      (isPublished) => {
        for (const [key, stream] of added) if (!isPublished(stream)) added.delete(key);
      },
    );
    const offer = answer === null ? null : this.#offerIn(answer);
    if (offer !== null) this.#carried = offer.streams;
    return offer;
  }

  /**
   * Janus rejects a whole request if one stream does not exist, and names that stream only in prose. Then `drop` has to
   * leave out those that are not published, and the request is made again.
   */
  async #whileAbsent(
    request: () => Promise<PluginAnswer> | null,
    drop: (isPublished: (stream: StreamReference) => boolean, published: StreamReference[]) => void,
  ): Promise<PluginAnswer | null> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await request();
      } catch (error) {
        if (!isJanusError(error, JANUS.noSuchFeed) || tries === TRIES_MAX) throw error;
        const published = await this.options.published();
        const keys = new Set(published.map(keyOf));
        drop((stream) => keys.has(keyOf(stream)), published);
      }
    }
  }

  async #request(add: (StreamReference & StreamSettings)[], unsubscribe: { sub_mid: string }[]): Promise<PluginAnswer> {
    const streams = add.map(({ feedId, mid, ...settings }) => ({ feed: feedId, mid, ...settingsOf(settings) }));
    if (this.#joined) {
      return this.change({
        request: 'update',
        ...(streams.length === 0 ? {} : { subscribe: streams }),
        ...(unsubscribe.length === 0 ? {} : { unsubscribe }),
      });
    }
    // With automatic updates, Janus makes offers on its own, which would collide with the requested ones.
    const join = { request: 'join', ptype: 'subscriber', room: this.options.roomId, autoupdate: false, streams };
    const answer = await this.change(join);
    this.#joined = true;
    return answer;
  }

  #offerIn(answer: PluginAnswer): SubscriberOffer | null {
    const { data, sdp } = answer;
    if (data['videoroom'] === 'updating') throw new MediaError('refused', 'An earlier offer is not answered yet');
    // An answer without an offer means that no negotiation is needed.
    if (sdp === undefined) return null;
    const streams = streamsIn(answer);
    this.#outstanding = outstandingOffer(this.options.offerWithinMs);
    return { sdp, streams, sectionCount: objectsIn(data['streams']).length };
  }
}

function outstandingOffer(withinMs: number): OutstandingOffer {
  let finish: OutstandingOffer['finish'] = () => undefined;
  const answered = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new MediaError('timeout', 'An offer was not answered in time')), withinMs);
    finish = (error) => {
      clearTimeout(timer);
      if (error === undefined) resolve();
      else reject(error);
    };
  });
  answered.catch(() => undefined);
  return { answered, finish };
}
