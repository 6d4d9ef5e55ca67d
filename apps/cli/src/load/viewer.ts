import type { Call, Platform } from '@callplane/client-js';
import type { nodePlatform } from '../node-platform.js';
import { receivedOf, type Received } from './figures.js';

export interface Ticket {
  url: string;
  token: string;
}

type NodePlatform = Awaited<ReturnType<typeof nodePlatform>>;

/** A participant that receives everything, and notes when. Times are in milliseconds since its join began. */
export class Viewer {
  joinedMs: number | null = null;
  firstPictureMs: number | null = null;
  /** When it had a picture of every publisher. */
  allPicturesMs: number | null = null;
  reconnections = 0;
  /** Why it has no call; null while it joins and in the call. */
  failure: string | null = null;
  #call: Call | null = null;
  #isLeaving = false;
  readonly #connections = new Set<RTCPeerConnection>();
  readonly #watched = new Set<MediaStreamTrack>();
  readonly #stops: (() => void)[] = [];
  #pictures = 0;

  constructor(
    private readonly node: NodePlatform,
    private readonly publishers: number,
  ) {}

  /** Never rejects: `failure` says why it has failed. */
  async join(ticket: () => Promise<Ticket>): Promise<void> {
    try {
      const { url, token } = await ticket();
      const { connect } = await import('@callplane/client-js');
      const beganMs = performance.now();
      const call = await connect({ url, token, platform: this.#platform(), adaptive: false });
      this.joinedMs = performance.now() - beganMs;
      this.#call = call;
      if (this.#isLeaving) {
        await call.leave();
        return;
      }
      call.on('trackSubscribed', ({ mediaStreamTrack }) => this.#watch(mediaStreamTrack, beganMs));
      for (const { tracks } of call.participants.values()) {
        for (const track of tracks.values()) this.#watch(track.mediaStreamTrack, beganMs);
      }
      call.on('state', (state) => {
        if (state === 'reconnecting') this.reconnections += 1;
      });
      call.on('closed', ({ reason }) => {
        if (!this.#isLeaving) this.failure = reason;
      });
    } catch (error) {
      this.failure = error instanceof Error ? error.message : String(error);
    }
  }

  async received(): Promise<Received> {
    const entries: { type: string }[] = [];
    for (const connection of this.#connections) {
      if (connection.connectionState === 'closed') continue;
      const report = (await connection.getStats()) as unknown as Map<string, { type: string }>;
      entries.push(...report.values());
    }
    return receivedOf(entries);
  }

  async leave(): Promise<void> {
    this.#isLeaving = true;
    for (const stop of this.#stops.splice(0)) stop();
    await this.#call?.leave();
  }

  #platform(): Partial<Platform> {
    const { RTCPeerConnection, WebSocket } = this.node;
    const connections = this.#connections;
    class NotedConnection extends RTCPeerConnection {
      constructor(configuration?: RTCConfiguration) {
        super(configuration);
        connections.add(this);
      }
      override close(): void {
        connections.delete(this);
        super.close();
      }
    }
    return { RTCPeerConnection: NotedConnection, WebSocket };
  }

  #watch(track: MediaStreamTrack | undefined, beganMs: number): void {
    if (track?.kind !== 'video' || this.#watched.has(track)) return;
    this.#watched.add(track);
    const sink = new this.node.media.RTCVideoSink(track);
    const stop = () => sink.stop();
    this.#stops.push(stop);
    sink.onframe = () => {
      stop();
      const tookMs = performance.now() - beganMs;
      this.firstPictureMs ??= tookMs;
      this.#pictures += 1;
      if (this.#pictures >= this.publishers) this.allPicturesMs ??= tookMs;
    };
  }
}
