import { asCallplaneError, CallplaneError, isPassing } from '../errors.js';
import type { LocalTrack } from '../local/local-track.js';
import type { Candidate } from '../protocol.generated.js';
import { Serial } from '../serial.js';
import { backoffMs } from '../signaling/backoff.js';
import { pause } from '../signaling/pause.js';
import type { Session } from '../signaling/session.js';
import { Peer } from './peer.js';

export interface PublisherContext {
  session: Session;
  createConnection: () => RTCPeerConnection;
  random: () => number;
  /** Published before and refused now, when it had to be published again. */
  onLost: (tracks: LocalTrack[], error: CallplaneError) => void;
}

/**
 * The connection that sends. What is to be published is kept beside it: when the media server loses the connection, a
 * new one publishes the same tracks under the same ids.
 */
export class Publisher {
  readonly #context: PublisherContext;
  readonly #serial = new Serial();
  readonly #tracks = new Map<string, LocalTrack>();
  readonly #transceivers = new Map<string, RTCRtpTransceiver>();
  #peer: Peer | undefined;
  #isClosed = false;

  constructor(context: PublisherContext) {
    this.#context = context;
  }

  get tracks(): ReadonlyMap<string, LocalTrack> {
    return this.#tracks;
  }

  get connection(): RTCPeerConnection | undefined {
    return this.#peer?.connection;
  }

  /** All of them in one negotiation; none, if the gateway refuses. */
  publish(tracks: LocalTrack[]): Promise<void> {
    return this.#serial.run(async () => {
      for (const track of tracks) this.#tracks.set(track.trackId, track);
      try {
        await this.#negotiate();
      } catch (error) {
        for (const track of tracks) await this.#drop(track);
        if (this.#tracks.size === 0) this.#closePeer();
        throw error;
      }
    });
  }

  unpublish(tracks: LocalTrack[]): Promise<void> {
    return this.#serial.run(async () => {
      for (const track of tracks) await this.#drop(track);
      if (this.#tracks.size > 0) return this.#negotiate();
      if (this.#peer === undefined) return;
      this.#closePeer();
      await this.#untilAnswered(() => this.#context.session.request({ type: 'unpublish' }));
    });
  }

  setMuted(track: LocalTrack, muted: boolean): Promise<void> {
    track.muted = muted;
    track.mediaStreamTrack.enabled = !muted;
    return this.#serial.run(async () => {
      const { trackId } = track;
      if (!this.#tracks.has(trackId)) return;
      // What it is by now: of several changes in a row the last one counts.
      await this.#untilAnswered(() => this.#context.session.request({ type: 'mute', trackId, muted: track.muted }));
    });
  }

  addCandidate(candidate: Candidate): void {
    void this.#peer?.addCandidate(candidate);
  }

  /** The other side has lost this connection: makes a new one. */
  reset(): void {
    this.#closePeer();
    void this.#serial.run(() => this.#restore());
  }

  /** Called in trouble, and when the gateway can be reached again: looks for another way through the network. */
  mend(): void {
    const { session } = this.#context;
    if (session.state !== 'connected' || this.#peer?.isTroubled !== true) return;
    if (this.#peer.connection.connectionState === 'failed') {
      session.request({ type: 'resetMedia', targets: ['publisher'] }).catch(() => undefined);
      this.reset();
      return;
    }
    // Should it not help, the connection fails, and a new one is made.
    void this.#serial.run(() => this.#negotiate({ iceRestart: true })).catch(() => undefined);
  }

  configure(configuration: RTCConfiguration): void {
    this.#peer?.connection.setConfiguration(configuration);
  }

  close(): void {
    this.#isClosed = true;
    this.#closePeer();
    this.#tracks.clear();
  }

  /** Goes on until it is published or refused for good. */
  async #restore(): Promise<void> {
    for (let attempt = 0; this.#peer === undefined && this.#tracks.size > 0 && !this.#isClosed; attempt++) {
      try {
        await this.#negotiate();
        return;
      } catch (error) {
        this.#closePeer();
        if (this.#context.session.state === 'closed') return;
        if (!isPassing(error)) {
          const tracks = [...this.#tracks.values()];
          this.#tracks.clear();
          this.#context.onLost(tracks, asCallplaneError(error));
          return;
        }
        await pause(backoffMs(attempt, this.#context.random())).over;
      }
    }
  }

  /** Offers what is to be published; with a new connection when there is none, or when it is lost meanwhile. */
  async #negotiate(options: RTCOfferOptions = {}): Promise<void> {
    for (;;) {
      await this.#context.session.connected();
      const peer = (this.#peer ??= this.#open());
      try {
        await this.#offer(peer, options);
        return;
      } catch (error) {
        if (this.#isClosed) throw error;
        if (peer !== this.#peer || isConnectionLost(error)) continue;
        await peer.connection.setLocalDescription({ type: 'rollback' }).catch(() => undefined);
        throw asCallplaneError(error);
      }
    }
  }

  async #offer(peer: Peer, options: RTCOfferOptions): Promise<void> {
    const { connection } = peer;
    for (const track of this.#tracks.values()) await this.#attach(connection, track);
    await connection.setLocalDescription(await connection.createOffer(options));
    const answer = this.#context.session.request({
      type: 'publish',
      sdp: connection.localDescription?.sdp ?? '',
      tracks: [...this.#tracks.values()].map(({ trackId, source, muted }) => ({
        trackId,
        mid: this.#transceivers.get(trackId)?.mid ?? '',
        source,
        muted,
      })),
    });
    peer.descriptionSent();
    await peer.setRemote({ type: 'answer', sdp: (await answer).sdp });
  }

  async #attach(connection: RTCPeerConnection, track: LocalTrack): Promise<void> {
    if (this.#transceivers.has(track.trackId)) return;
    const { mediaStreamTrack, encodings, kind, trackId } = track;
    const idle = connection.getTransceivers().find((one) => encodings === undefined && isIdle(one, kind));
    if (idle !== undefined) {
      await idle.sender.replaceTrack(mediaStreamTrack);
      idle.direction = 'sendonly';
      this.#transceivers.set(trackId, idle);
      return;
    }
    const init: RTCRtpTransceiverInit = { direction: 'sendonly' };
    if (encodings !== undefined) init.sendEncodings = encodings;
    this.#transceivers.set(trackId, connection.addTransceiver(mediaStreamTrack, init));
  }

  async #drop(track: LocalTrack): Promise<void> {
    this.#tracks.delete(track.trackId);
    const transceiver = this.#transceivers.get(track.trackId);
    if (transceiver === undefined) return;
    this.#transceivers.delete(track.trackId);
    // Its section stays, inactive, for the next track of its kind.
    transceiver.direction = 'inactive';
    await transceiver.sender.replaceTrack(null).catch(() => undefined);
  }

  #open(): Peer {
    const { session, createConnection } = this.#context;
    return new Peer(createConnection(), {
      onCandidate: (candidate) => session.post({ type: 'candidate', target: 'publisher', candidate }),
      onTrouble: () => this.mend(),
    });
  }

  #closePeer(): void {
    this.#peer?.close();
    this.#peer = undefined;
    this.#transceivers.clear();
  }

  /** Repeats a request that may be repeated for as long as connections are lost meanwhile. */
  async #untilAnswered(request: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await request();
        return;
      } catch (error) {
        if (!isConnectionLost(error)) throw error;
      }
    }
  }
}

function isIdle({ direction, receiver, sender }: RTCRtpTransceiver, kind: string): boolean {
  return direction === 'inactive' && sender.track === null && receiver.track.kind === kind;
}

function isConnectionLost(error: unknown): boolean {
  return error instanceof CallplaneError && error.code === 'connection_lost';
}
