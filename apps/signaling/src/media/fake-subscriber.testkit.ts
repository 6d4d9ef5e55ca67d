import { EventEmitter } from 'node:events';
import {
  MediaError,
  type ListedSection,
  type MediaPeerEvents,
  type MediaSubscriber,
  type SectionSettings,
  type StreamReference,
  type StreamSwitch,
  type SubscriberChange,
  type SubscriberOffer,
  type SwitchOutcome,
} from '@callplane/media';

export interface FakeStream extends StreamReference {
  kind: 'audio' | 'video';
  codec: string;
}

interface FakeSection {
  mid: string;
  kind: 'audio' | 'video';
  codec: string;
  stream: FakeStream | null;
  send: boolean;
  substream: number;
  /** Whether an offer with this section was answered. */
  isReady: boolean;
}

/** Payload types in Janus' offers. */
const PAYLOADS: Record<string, number> = { opus: 111, vp8: 96, vp9: 101, h264: 107, av1: 98 };

const nameOf = ({ feedId, mid }: StreamReference) => `${feedId}/${mid}`;

/** A subscriber's handle whose media sections behave as `sections.slow.test.ts` of packages/media proves for Janus. */
export class FakeSubscriber extends EventEmitter<MediaPeerEvents> {
  readonly handleId = 1;
  readonly sections: FakeSection[] = [];
  /** The requests, for example `switch 2`. */
  readonly did: string[] = [];
  offers = 0;
  isDetached = false;
  /** Whether the first answer is followed by a connection. */
  connects = true;
  /** Set to let the next request fail. */
  failure: MediaError | null = null;
  #isOffered = false;
  #isUp = false;
  readonly #published: ReadonlyMap<string, FakeStream>;

  constructor(published: ReadonlyMap<string, FakeStream>) {
    super();
    this.#published = published;
  }

  /** The streams that are sent, not paused. */
  get sent(): string[] {
    return this.sections.flatMap(({ stream, send }) => (stream === null || !send ? [] : [nameOf(stream)])).sort();
  }

  get asSubscriber(): MediaSubscriber {
    return this as unknown as MediaSubscriber;
  }

  async update(change: SubscriberChange): Promise<SubscriberOffer | null> {
    await this.#requested(`update +${change.add.length} -${change.remove.length}`);
    if (this.#isOffered) throw new MediaError('refused', 'an offer is outstanding');
    // Janus counts the removal of an idle section as a change, too.
    let changes = change.remove.length;
    for (const section of this.sections) if (change.remove.includes(section.mid)) section.stream = null;
    for (const { paused, spatial, ...reference } of change.add) {
      const stream = this.#published.get(nameOf(reference));
      if (stream === undefined) continue;
      changes += 1;
      const { kind, codec } = stream;
      let section = this.sections.find((one) => one.stream === null && one.kind === kind && one.codec === codec);
      if (section === undefined) {
        section = { mid: String(this.sections.length), kind, codec, stream, send: true, substream: 2, isReady: false };
        this.sections.push(section);
      }
      Object.assign(section, { stream, send: paused !== true, substream: spatial ?? 2 });
    }
    return changes === 0 ? null : this.#offer();
  }

  async switch(changes: StreamSwitch[]): Promise<SwitchOutcome> {
    await this.#requested(`switch ${changes.length}`);
    if (this.#isOffered) throw new MediaError('refused', 'an offer is outstanding');
    const absent = changes.filter((change) => !this.#published.has(nameOf(change)));
    let isOffer = false;
    for (const change of changes) {
      const stream = this.#published.get(nameOf(change));
      const section = this.sections.find(({ mid }) => mid === change.subscriberMid);
      if (stream === undefined || section === undefined) continue;
      if (section.kind !== stream.kind || section.codec !== stream.codec) continue;
      isOffer ||= section.stream === null;
      Object.assign(section, { stream, send: true, substream: change.spatial ?? 2 });
    }
    const offer = isOffer ? this.#offer() : null;
    const sections = absent.length === changes.length ? null : this.#list();
    return { sections, absent: absent.map(({ feedId, mid }) => ({ feedId, mid })), offer };
  }

  async restart(): Promise<string> {
    await this.#requested('restart');
    if (this.#isOffered) throw new MediaError('refused', 'an offer is outstanding');
    return this.#offer().sdp;
  }

  async configure(settings: SectionSettings[]): Promise<void> {
    await this.#requested(`configure ${settings.length}`);
    for (const { subscriberMid, paused, spatial } of settings) {
      const section = this.sections.find(({ mid }) => mid === subscriberMid);
      if (section === undefined) throw new MediaError('refused', 'no such section');
      if (paused !== undefined) section.send = !paused;
      if (spatial !== undefined) section.substream = spatial;
    }
  }

  async listSections(): Promise<ListedSection[]> {
    await this.#requested('list');
    return this.#list();
  }

  #list(): ListedSection[] {
    return this.sections.map(({ mid, kind, stream, send, substream, isReady }) => ({
      subscriberMid: mid,
      kind,
      stream: stream === null ? null : { feedId: stream.feedId, mid: stream.mid },
      isNegotiated: isReady,
      settings: { spatial: substream < 2 ? substream : undefined, paused: !send },
    }));
  }

  async requestKeyFrames(subscriberMids: readonly string[]): Promise<void> {
    await this.#requested(`key frames of ${subscriberMids.join()}`);
  }

  async answer(sdp: string): Promise<void> {
    await this.#requested('answer');
    if (!this.#isOffered) throw new MediaError('refused', 'no offer');
    if (sdp === 'invalid') throw new MediaError('invalid_sdp', 'invalid');
    this.#isOffered = false;
    for (const section of this.sections) section.isReady = true;
    if (this.connects) this.connect();
  }

  /** ICE and DTLS are up. */
  connect(): void {
    if (!this.#isUp) this.emit('connected');
    this.#isUp = true;
  }

  /** A publisher has ended the stream: its section is idle. */
  end(stream: StreamReference): void {
    for (const section of this.sections) {
      if (section.stream !== null && nameOf(section.stream) === nameOf(stream)) section.stream = null;
    }
  }

  addCandidate(): Promise<void> {
    return Promise.resolve();
  }

  detach(): Promise<void> {
    this.isDetached = true;
    return Promise.resolve();
  }

  #offer(): SubscriberOffer {
    this.offers += 1;
    this.#isOffered = true;
    const sections = this.sections.map(({ mid, kind, codec }) => {
      const payload = PAYLOADS[codec] ?? 0;
      return `m=${kind} 9 UDP/TLS/RTP/SAVPF ${payload}\r\na=mid:${mid}\r\na=rtpmap:${payload} ${codec}/90000\r\n`;
    });
    return { sdp: `offer ${this.offers}\r\n${sections.join('')}`, sections: this.#list() };
  }

  async #requested(what: string): Promise<void> {
    this.did.push(what);
    await Promise.resolve();
    const { failure } = this;
    this.failure = null;
    if (failure !== null) throw failure;
    if (this.isDetached) throw new MediaError('closed', 'detached');
  }
}
