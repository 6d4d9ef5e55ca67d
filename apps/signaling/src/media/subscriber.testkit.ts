import { expect, jest } from '@jest/globals';
import { MediaError, type MediaNode, type MediaSession } from '@callplane/media';
import type { ServerMessage } from '@callplane/protocol';
import { RequestFailure } from '../clients/client.js';
import { Speakers } from '../rooms/speakers.js';
import { type IndexedTrack, type TrackIndex, TrackOrder } from '../rooms/tracks.js';
import type { MediaDeps, MediaOwner, SubscriberRecord } from './media-writes.js';
import type { MediaPlace } from './places.js';
import { FakeSubscriber, type FakeStream } from './fake-subscriber.testkit.js';
import { Subscriber } from './subscriber.js';

export const ANSWER = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n';

/** A subscriber with everything around it replaced: the room, the client, and a media server in memory. */
export class Stage {
  readonly published = new Map<string, FakeStream>();
  readonly entries = new Map<string, IndexedTrack>();
  readonly sent: ServerMessage[] = [];
  readonly errors: unknown[] = [];
  readonly handles: FakeSubscriber[] = [];
  /** How often the client's connection was lost. */
  lost = 0;
  readonly subscriber: Subscriber;
  isUp = true;
  isConnected = false;
  readonly #node: MediaNode;
  readonly #session: MediaSession;
  layers: ReadonlyMap<string, number> = new Map();
  /** Fails the next attachments. */
  attachFailures = 0;
  version = 0;

  constructor({ autoSubscribe = true, connectionNumber = 1 } = {}) {
    const index = {
      entries: this.entries,
      hasStream: ({ feedId, mid }: { feedId: string; mid: string }) => this.#located(feedId, mid),
      isMuted: () => false,
      muteVersion: 0,
      of: () => [],
    };
    Object.defineProperty(index, 'version', { get: () => this.version });
    const tracks = index as unknown as TrackIndex;
    const layers = { note: (_: string, wanted: ReadonlyMap<string, number>) => (this.layers = wanted) };
    const owner = {
      sessionId: 'sess',
      participantId: 'me',
      roomId: 'room',
      connectionNumber,
      autoSubscribe,
      isGone: false,
      send: (message: ServerMessage) => this.isConnected && this.sent.push(message),
      room: { state: null, tracks, layers, order: new TrackOrder(tracks, new Speakers()) },
    };
    const deps = {
      logger: { info: () => undefined, error: (...line: unknown[]) => this.errors.push(line) },
      writes: { changed: () => undefined },
    };
    const node = { ensureRoom: () => Promise.resolve() } as unknown as MediaNode;
    const session = {
      attachSubscriber: () => this.#attach(),
      adoptSubscriber: () => this.handle,
    } as unknown as MediaSession;
    [this.#node, this.#session] = [node, session];
    const place: MediaPlace = { node, generation: 1, session: () => Promise.resolve(session) };
    this.subscriber = new Subscriber(
      deps as unknown as MediaDeps,
      owner as unknown as MediaOwner,
      () => (this.isUp ? place : null),
      () => (this.lost += 1),
    );
  }

  /** The client chooses its tracks. */
  subscribe(...tracks: Parameters<Subscriber['subscribe']>[0]): void {
    this.subscriber.subscribe(tracks);
  }

  unsubscribe(...tracks: Parameters<Subscriber['unsubscribe']>[0]): void {
    this.subscriber.unsubscribe([...tracks]);
  }

  get handle(): FakeSubscriber | undefined {
    return this.handles.at(-1);
  }

  publish(at: number, codec = 'vp8'): void {
    const feedId = `f${at}`;
    this.published.set(`${feedId}/1`, { feedId, mid: '1', kind: 'video', codec });
    this.entries.set(`p${at}/cam`, {
      participantId: `p${at}`,
      trackId: 'cam',
      kind: 'video',
      source: 'camera',
      feedId,
      mid: '1',
    });
    this.#changed();
  }

  unpublish(at: number): void {
    const stream = this.published.get(`f${at}/1`);
    if (stream === undefined) return;
    this.published.delete(`f${at}/1`);
    this.entries.delete(`p${at}/cam`);
    this.handle?.end(stream);
    this.#changed();
  }

  /** Continues with the connection of the gateway at the other stage, whose last record is `record`. */
  async claim(other: Stage, record: SubscriberRecord | null): Promise<boolean> {
    other.disconnect();
    for (const name of other.published.keys()) this.publish(Number(/\d+/.exec(name)));
    this.handles.push(other.handle!);
    if (record === null) return false;
    return this.subscriber.claim(this.#node, this.#session, record);
  }

  connect(): void {
    this.isConnected = true;
    this.subscriber.unpause();
  }

  /** Connects to a room with these publishers, and gets the offer if there is one. */
  async join(...publishers: number[]): Promise<void> {
    for (const at of publishers) this.publish(at);
    this.connect();
    await this.settle();
  }

  /** Answers, and receives the tracks that the offer added. */
  async receive(): Promise<void> {
    expect(await this.answer()).toBeNull();
    await this.settle();
  }

  disconnect(): void {
    this.isConnected = false;
    this.subscriber.pause();
  }

  /** Answers the latest offer. @returns the code of the refusal, or null. */
  async answer(sdp = ANSWER): Promise<string | null> {
    const offer = this.of('offer').at(-1);
    try {
      await this.subscriber.answer(offer?.offerId ?? 0, sdp);
      return null;
    } catch (error) {
      if (error instanceof RequestFailure) return error.code;
      throw error;
    }
  }

  of<T extends ServerMessage['type']>(type: T): Extract<ServerMessage, { type: T }>[] {
    return this.sent.filter((message): message is Extract<ServerMessage, { type: T }> => message.type === type);
  }

  /** Lets all requests to the media server finish. */
  async settle(): Promise<void> {
    await jest.advanceTimersByTimeAsync(0);
  }

  /** The tracks that the client knows as received. */
  get received(): string[] {
    return (this.of('subscribed').at(-1)?.tracks ?? []).map(({ participantId }) => participantId).sort();
  }

  #changed(): void {
    this.version += 1;
    this.subscriber.wake();
  }

  #located(feedId: string, mid: string): boolean {
    return [...this.entries.values()].some((track) => track.feedId === feedId && track.mid === mid);
  }

  async #attach(): Promise<FakeSubscriber> {
    await Promise.resolve();
    if (this.attachFailures > 0) {
      this.attachFailures -= 1;
      throw new MediaError('timeout', 'no answer');
    }
    const handle = new FakeSubscriber(this.published);
    this.handles.push(handle);
    return handle;
  }
}
