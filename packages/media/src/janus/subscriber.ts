import {
  MediaError,
  type ListedSection,
  type SectionSettings,
  type StreamLayers,
  type StreamReference,
  type StreamSettings,
  type StreamSwitch,
  type SubscriberChange,
  type SubscriberOffer,
  type SwitchOutcome,
} from '../types.js';
import { JanusHandle, type HandleSession, type PluginAnswer } from './handle.js';
import { isJanusError, JANUS, objectOf, objectsIn, textOf } from './messages.js';
import { publishedStreams } from './rooms.js';

/** No section has this name: Janus numbers them. */
const NO_SECTION = 'none';
/** How often a change is tried if a stream ends between the lookup and the request. */
const TRIES_MAX = 3;
/**
 * How long a chosen simulcast layer may be silent until Janus sends a lower one, in microseconds. Its default of 250 ms
 * is too short for a publisher whose uplink recovers.
 */
const FALLBACK_US = 1_000_000;
/** The highest layers, which Janus sends unless it is told otherwise. */
const LAYER_MAX = 2;

/**
 * A handle that receives many streams over one peer connection (a multistream subscriber). The caller makes one change at
 * a time, and none while an offer is unanswered: browsers fail on the order of media sections otherwise.
 */
export class MediaSubscriber extends JanusHandle {
  constructor(
    session: HandleSession,
    handleId: number,
    private readonly roomId: string,
    private isJoined: boolean,
  ) {
    super(session, handleId);
  }

  /**
   * Starts receiving the streams in `add`, and stops the sections in `remove`. Resolves to an offer that must
   * be answered before the next change, or to null if no negotiation is needed. Skips streams that do not exist.
   * Janus would open a second section for a stream that is already received.
   */
  async update({ add, remove }: SubscriberChange): Promise<SubscriberOffer | null> {
    let present = add;
    const answer = await this.#whileAbsent(
      () => (present.length === 0 && remove.length === 0 ? null : this.#subscribe(present, remove)),
      (isPublished) => (present = present.filter(isPublished)),
    );
    return answer === null ? null : offerIn(answer);
  }

  /** Gives media sections other streams, without an offer. The new streams are sent, not paused. */
  async switch(changes: StreamSwitch[]): Promise<SwitchOutcome> {
    const absent: StreamReference[] = [];
    let present = changes;
    const answer = await this.#whileAbsent(
      () => (present.length === 0 ? null : this.#switch(present)),
      (isPublished) => {
        absent.push(...present.filter((one) => !isPublished(one)));
        present = present.filter(isPublished);
      },
    );
    if (answer === null) return { sections: null, absent, offer: null };
    // A section that was idle needs a negotiation: Janus then answers `updated`, with an offer, before `switched`.
    const offer = offerIn(answer);
    // A switch resets FALLBACK_US, and takes no other value (as of 1.4.1).
    await this.configure(present.map(({ subscriberMid }) => ({ subscriberMid })));
    return { sections: sectionsIn(answer), absent, offer };
  }

  /**
   * Asks Janus for all sections. Changes nothing.
   * @param known a stream that the room probably has: without one, Janus has to be asked for that, too
   * @returns an empty list if the room has no stream at all. No section carries one then.
   */
  async listSections(known: StreamReference | undefined): Promise<ListedSection[]> {
    // Janus has no request for it. It answers the switch of a section that does not exist with the list, but only if the
    // stream exists.
    let stream = known ?? (await publishedStreams(this.session, this.roomId))[0];
    const answer = await this.#whileAbsent(
      () => (stream === undefined ? null : this.#switch([{ ...stream, subscriberMid: NO_SECTION }])),
      (_, published) => {
        [stream] = published;
      },
    );
    return answer === null ? [] : sectionsIn(answer);
  }

  /**
   * Answers the latest offer, after which media flows. If the server rejects the answer (`invalid_sdp`), the caller may
   * send another.
   */
  async answer(sdp: string): Promise<void> {
    await this.change({ request: 'start' }, { type: 'answer', sdp });
  }

  /**
   * Begins ICE anew, with the streams and media sections as they are.
   * @returns an offer that must be answered, as after `update`
   */
  async restart(): Promise<string> {
    const offer = offerIn(await this.change({ request: 'configure', restart: true }));
    if (offer === null) throw new MediaError('refused', 'Janus did not restart ICE');
    return offer.sdp;
  }

  /** Changes how received streams are sent, without an offer. */
  async configure(settings: SectionSettings[]): Promise<void> {
    const streams = settings.map(({ subscriberMid, ...rest }) => ({ mid: subscriberMid, ...requestOf(rest) }));
    if (streams.length > 0) await this.change({ request: 'configure', streams });
  }

  /** Asks for key frames of the video in these sections, which must not be paused. */
  async requestKeyFrames(subscriberMids: readonly string[]): Promise<void> {
    const withPause = (paused: boolean) =>
      this.configure(subscriberMids.map((subscriberMid) => ({ subscriberMid, paused })));
    // Janus asks for a key frame when a section resumes, and continues its sequence numbers without a gap. Both
    // requests are made at once, so that no other change comes in between.
    await Promise.all([withPause(true), withPause(false)]);
  }

  async #subscribe(add: SubscriberChange['add'], remove: readonly string[]): Promise<PluginAnswer> {
    const streams = add.map(({ feedId, mid, ...settings }) => ({ feed: feedId, mid, ...requestOf(settings) }));
    if (this.isJoined) {
      return this.change({
        request: 'update',
        ...(streams.length === 0 ? {} : { subscribe: streams }),
        ...(remove.length === 0 ? {} : { unsubscribe: remove.map((mid) => ({ sub_mid: mid })) }),
      });
    }
    // With automatic updates, Janus makes offers on its own, which would collide with the requested ones.
    const join = { request: 'join', ptype: 'subscriber', room: this.roomId, autoupdate: false, streams };
    const answer = await this.change(join);
    this.isJoined = true;
    return answer;
  }

  #switch(changes: readonly StreamSwitch[]): Promise<PluginAnswer> {
    const streams = changes.map(({ feedId, mid, subscriberMid, ...layers }) => ({
      feed: feedId,
      mid,
      sub_mid: subscriberMid,
      ...layersOf(layers),
    }));
    return this.change({ request: 'switch', streams });
  }

  /**
   * Janus rejects a whole request if one stream does not exist, and names that stream only in prose. Then `drop` has to
   * leave out streams that are not published, and the request is made again.
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
        const published = await publishedStreams(this.session, this.roomId);
        const isPublished = ({ feedId, mid }: StreamReference) =>
          published.some((one) => one.feedId === feedId && one.mid === mid);
        drop(isPublished, published);
      }
    }
  }
}

function offerIn(answer: PluginAnswer): SubscriberOffer | null {
  if (answer.data['videoroom'] === 'updating') throw new MediaError('refused', 'An earlier offer is not answered yet');
  // An answer without an offer means that no negotiation is needed.
  return answer.sdp === undefined ? null : { sdp: answer.sdp, sections: sectionsIn(answer) };
}

function sectionsIn({ data }: PluginAnswer): ListedSection[] {
  return objectsIn(data['streams']).map((section) => {
    const { 'substream-target': spatial, 'temporal-layer-target': temporal } = objectOf(section['simulcast']);
    const isIdle = section['active'] !== true || section['feed_id'] === undefined;
    return {
      subscriberMid: textOf(section['mid']),
      kind: section['type'] === 'audio' ? 'audio' : 'video',
      stream: isIdle ? null : { feedId: textOf(section['feed_id']), mid: textOf(section['feed_mid']) },
      isNegotiated: section['ready'] !== false,
      settings: { spatial: layerIn(spatial), temporal: layerIn(temporal), paused: section['send'] === false },
    };
  });
}

/** Undefined for a stream without layers, and for the highest one. */
function layerIn(value: unknown): number | undefined {
  return typeof value === 'number' && value < LAYER_MAX ? value : undefined;
}

/** Janus' words for the settings. JSON leaves absent ones out. */
function requestOf({ paused, ...layers }: StreamSettings) {
  return { fallback: FALLBACK_US, ...layersOf(layers), send: paused === undefined ? undefined : !paused };
}

function layersOf({ spatial, temporal }: StreamLayers) {
  return { substream: spatial, temporal };
}
