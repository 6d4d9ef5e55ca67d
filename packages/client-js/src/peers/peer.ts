import { asCallplaneError } from '../errors.js';
import type { Candidate } from '../protocol.generated.js';
import { withAudioNack } from './audio-nack.js';
import { IceRepair, type RepairContext } from './ice-repair.js';

export interface PeerListener extends Omit<RepairContext, 'connection'> {
  /** A local candidate to send to the gateway. */
  onCandidate: (candidate: Candidate) => void;
}

/** One peer connection. Buffers candidates in both directions until the other side can use them. */
export class Peer {
  readonly connection: RTCPeerConnection;
  readonly repair: IceRepair;
  readonly #listener: PeerListener;
  /** Remote candidates that arrived before their description; undefined while there is none to come. */
  #early: Candidate[] | undefined = [];
  /** Local candidates whose description has not been sent yet; undefined while there is none to send. */
  #unsent: Candidate[] | undefined = [];
  #isClosed = false;

  constructor(connection: RTCPeerConnection, listener: PeerListener) {
    this.connection = connection;
    this.#listener = listener;
    connection.onicecandidate = ({ candidate }) => this.#gathered(candidate);
    this.repair = new IceRepair({ connection, ...listener });
    connection.onconnectionstatechange = () => this.repair.changed();
  }

  /** Call when a remote description has arrived: candidates from now on belong to it. */
  descriptionArrived(): void {
    this.#early ??= [];
  }

  /** Call after sending the local description: releases the buffered local candidates. */
  descriptionSent(): void {
    const unsent = this.#unsent ?? [];
    this.#unsent = undefined;
    for (const candidate of unsent) this.#listener.onCandidate(candidate);
  }

  /**
   * Creates the local description and applies it.
   * @returns its SDP.
   * @throws CallplaneError `invalid_sdp` if the browser cannot do that.
   */
  async setLocal(create: () => Promise<RTCSessionDescriptionInit>): Promise<string> {
    this.#unsent ??= [];
    try {
      const created = await create();
      const changed = { ...created, sdp: withAudioNack(created.sdp ?? '') };
      // Browsers may refuse a description that they did not make exactly so.
      await this.connection.setLocalDescription(changed).catch(() => this.connection.setLocalDescription(created));
      return this.connection.localDescription?.sdp ?? '';
    } catch (error) {
      throw asCallplaneError(error, 'invalid_sdp');
    }
  }

  /** @throws CallplaneError `invalid_sdp` if the browser refuses the description. */
  async setRemote(description: RTCSessionDescriptionInit): Promise<void> {
    try {
      const { type, sdp = '' } = description;
      await this.connection.setRemoteDescription({ type, sdp: withAudioNack(sdp) });
    } catch (error) {
      throw asCallplaneError(error, 'invalid_sdp');
    }
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const candidate of early) await this.#add(candidate);
  }

  async addCandidate(candidate: Candidate): Promise<void> {
    if (this.#early === undefined) await this.#add(candidate);
    else this.#early.push(candidate);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.repair.close();
    this.connection.onicecandidate = null;
    this.connection.onconnectionstatechange = null;
    this.connection.close();
  }

  async #add(candidate: Candidate): Promise<void> {
    if (candidate === null || this.#isClosed) return;
    // A candidate of an earlier ICE generation or a dropped section cannot be added. That is harmless, because others
    // remain.
    await this.connection.addIceCandidate(candidate).catch(() => undefined);
  }

  #gathered(found: RTCIceCandidate | null): void {
    // An empty candidate only marks the end of a generation.
    if (found?.candidate === '') return;
    const candidate = found && {
      candidate: found.candidate,
      sdpMid: found.sdpMid,
      sdpMLineIndex: found.sdpMLineIndex,
      usernameFragment: found.usernameFragment ?? null,
    };
    if (this.#unsent === undefined) this.#listener.onCandidate(candidate);
    else this.#unsent.push(candidate);
  }
}
