import { asCallplaneError, hasCode, isPassing, type CallplaneError } from '../errors.js';
import type { LocalTrack } from '../local/local-track.js';
import { backoffMs, pause, retry, Serial } from '../wait.js';
import { Peer, type PeersContext } from './peer.js';

export interface PublisherContext extends PeersContext {
  /** Called with tracks that were published before and that the gateway refuses after a reset. */
  onLost: (tracks: LocalTrack[], error: CallplaneError) => void;
  /** `tracks` has changed. */
  onChange: () => void;
}

/**
 * The sending connection. The list of published tracks outlives it: when the media server loses the connection, a new
 * one publishes the same tracks under the same ids.
 */
export class Publisher {
  peer: Peer | undefined;
  readonly #serial = new Serial();
  readonly #tracks = new Map<string, LocalTrack>();
  readonly #transceivers = new Map<string, RTCRtpTransceiver>();
  /** `LocalTrack.section` of the track that a media section carries, or carried last. */
  readonly #sections = new WeakMap<RTCRtpTransceiver, string>();

  constructor(private readonly context: PublisherContext) {}

  get isEncrypted(): boolean {
    return this.context.encryption() !== undefined;
  }

  get tracks(): ReadonlyMap<string, LocalTrack> {
    return this.#tracks;
  }

  senderOf(trackId: string): RTCRtpSender | undefined {
    return this.#transceivers.get(trackId)?.sender;
  }

  /** Publishes all tracks in one negotiation, or none if the gateway refuses. */
  publish(tracks: LocalTrack[]): Promise<void> {
    return this.#serial.run(async () => {
      for (const track of tracks) this.#tracks.set(track.trackId, track);
      this.context.onChange();
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
      if (this.peer === undefined) return;
      this.#closePeer();
      await this.#untilAnswered(() => this.context.session.request({ type: 'unpublish' }));
    });
  }

  setMuted(track: LocalTrack, muted: boolean): Promise<void> {
    track.muted = muted;
    track.mediaStreamTrack.enabled = !muted;
    return this.#serial.run(async () => {
      const { trackId } = track;
      if (!this.#tracks.has(trackId)) return;
      // Sends the current value: of several quick changes the last one counts.
      await this.#untilAnswered(() => this.context.session.request({ type: 'mute', trackId, muted: track.muted }));
    });
  }

  /** Sends other media on the published track, or none, without a negotiation. */
  replaceMedia({ trackId }: LocalTrack, media: MediaStreamTrack | null): Promise<void> {
    return this.#serial.run(async () => {
      await this.#transceivers.get(trackId)?.sender.replaceTrack(media);
    });
  }

  reset(): void {
    this.#closePeer();
    void this.#serial.run(() => this.#restore());
  }

  close(): void {
    this.#tracks.clear();
    this.#closePeer();
  }

  /** Retries until the tracks are published or finally refused. */
  #restore(): Promise<void> {
    return retry(async (count) => {
      if (this.peer !== undefined || this.#tracks.size === 0) return undefined;
      try {
        await this.#negotiate();
      } catch (error) {
        this.#closePeer();
        if (this.context.session.state === 'closed') return undefined;
        if (isPassing(error)) return () => pause(backoffMs(count, this.context.random())).over;
        const tracks = [...this.#tracks.values()];
        this.close();
        this.context.onLost(tracks, asCallplaneError(error));
      }
      return undefined;
    });
  }

  /** Offers all tracks. Opens a connection if there is none, or if the current one is lost during the negotiation. */
  #negotiate(options: RTCOfferOptions = {}): Promise<void> {
    const { session } = this.context;
    return retry(async () => {
      const socket = await session.connected();
      const peer = (this.peer ??= this.#open());
      try {
        await this.#offer(peer, options);
      } catch (error) {
        if (peer !== this.peer) return () => session.connected();
        if (hasCode(error, 'connection_lost')) return () => session.connected(socket);
        await peer.connection.setLocalDescription({ type: 'rollback' }).catch(() => undefined);
        throw asCallplaneError(error);
      }
      return undefined;
    });
  }

  async #offer(peer: Peer, options: RTCOfferOptions): Promise<void> {
    const { connection } = peer;
    await peer.ready();
    for (const track of this.#tracks.values()) await this.#attach(connection, track);
    const sdp = await peer.setLocal(() => connection.createOffer(options));
    const answer = await this.context.session.request({
      type: 'publish',
      sdp,
      tracks: [...this.#tracks.values()].map(({ trackId, source, muted }) => ({
        trackId,
        mid: this.#transceivers.get(trackId)?.mid ?? '',
        source,
        muted,
      })),
      ...(this.isEncrypted ? { encrypted: true } : {}),
    });
    let answered = answer.sdp;
    for (const { trackId, tuneAnswer } of this.#tracks.values()) {
      answered = tuneAnswer?.(answered, this.#transceivers.get(trackId)?.mid ?? '') ?? answered;
    }
    await peer.setRemote({ type: 'answer', sdp: answered });
  }

  async #attach(connection: RTCPeerConnection, track: LocalTrack): Promise<void> {
    if (this.#transceivers.has(track.trackId)) return;
    const { mediaStreamTrack, encodings, section, trackId } = track;
    const idle = connection.getTransceivers().find((one) => isIdle(one) && this.#sections.get(one) === section);
    const init: RTCRtpTransceiverInit = { direction: 'sendonly' };
    if (encodings !== undefined) init.sendEncodings = encodings;
    const transceiver = idle ?? connection.addTransceiver(mediaStreamTrack, init);
    this.context.encryption()?.send(transceiver.sender, track);
    if (idle !== undefined) {
      await idle.sender.replaceTrack(mediaStreamTrack);
      idle.direction = 'sendonly';
    }
    this.#sections.set(transceiver, section);
    this.#transceivers.set(trackId, transceiver);
    await track.onSection?.(transceiver, idle !== undefined);
  }

  async #drop(track: LocalTrack): Promise<void> {
    this.#tracks.delete(track.trackId);
    this.context.onChange();
    const transceiver = this.#transceivers.get(track.trackId);
    if (transceiver === undefined) return;
    this.#transceivers.delete(track.trackId);
    // The section stays, inactive, for the next track of its kind, layers and codec.
    transceiver.direction = 'inactive';
    await transceiver.sender.replaceTrack(null).catch(() => undefined);
  }

  #open(): Peer {
    const peer: Peer = new Peer('publisher', this.context, {
      restart: () =>
        this.#serial.run(async () => {
          if (this.peer === peer) await this.#negotiate({ iceRestart: true });
        }),
      replace: () => this.reset(),
    });
    return peer;
  }

  #closePeer(): void {
    this.peer?.close();
    this.peer = undefined;
    this.#transceivers.clear();
    // Nothing is sent, so no path is missing.
    if (this.#tracks.size === 0) this.context.onPath('publisher', false);
  }

  /** Repeats a request whose connection is lost, over the next one. */
  #untilAnswered(request: () => Promise<unknown>): Promise<void> {
    const { session } = this.context;
    return retry(async () => {
      const socket = await session.connected();
      try {
        await request();
      } catch (error) {
        if (!hasCode(error, 'connection_lost')) throw error;
        return () => session.connected(socket);
      }
      return undefined;
    });
  }
}

function isIdle({ direction, sender }: RTCRtpTransceiver): boolean {
  return direction === 'inactive' && sender.track === null;
}
