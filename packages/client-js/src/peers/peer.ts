import type { Candidate } from '../protocol.generated.js';

/** A connection that is only shaky mends itself mostly within this time. */
const SHAKY_FOR_MS = 3_000;

export interface PeerListener {
  /** To be sent to the gateway. */
  onCandidate: (candidate: Candidate) => void;
  /** It has failed, or has been without its network for some seconds. */
  onTrouble: () => void;
}

/** One peer connection. Candidates wait in both directions until the other side can use them. */
export class Peer {
  readonly connection: RTCPeerConnection;
  readonly #listener: PeerListener;
  /** Remote ones that came before the remote description. */
  #early: Candidate[] | undefined = [];
  /** Local ones that the gateway cannot relate to anything yet. */
  #unsent: Candidate[] | undefined = [];
  #shaky: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(connection: RTCPeerConnection, listener: PeerListener) {
    this.connection = connection;
    this.#listener = listener;
    connection.onicecandidate = ({ candidate }) => this.#gathered(candidate);
    connection.onconnectionstatechange = () => this.#changed(connection.connectionState);
  }

  /** The description that its candidates belong to has been sent. */
  descriptionSent(): void {
    const unsent = this.#unsent ?? [];
    this.#unsent = undefined;
    for (const candidate of unsent) this.#listener.onCandidate(candidate);
  }

  async setRemote(description: RTCSessionDescriptionInit): Promise<void> {
    await this.connection.setRemoteDescription(description);
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const candidate of early) await this.#add(candidate);
  }

  async addCandidate(candidate: Candidate): Promise<void> {
    if (this.#early === undefined) await this.#add(candidate);
    else this.#early.push(candidate);
  }

  get isTroubled(): boolean {
    return ['disconnected', 'failed'].includes(this.connection.connectionState);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#shaky);
    this.connection.onicecandidate = null;
    this.connection.onconnectionstatechange = null;
    this.connection.close();
  }

  async #add(candidate: Candidate): Promise<void> {
    if (candidate === null || this.#isClosed) return;
    // One that cannot be used (of an earlier ICE generation, of a section that was dropped) is no harm: there are others.
    await this.connection.addIceCandidate(candidate).catch(() => undefined);
  }

  #gathered(found: RTCIceCandidate | null): void {
    // An empty one only ends a generation.
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

  #changed(state: RTCPeerConnectionState): void {
    clearTimeout(this.#shaky);
    if (state === 'failed') this.#listener.onTrouble();
    if (state === 'disconnected') this.#shaky = setTimeout(this.#listener.onTrouble, SHAKY_FOR_MS);
  }
}
