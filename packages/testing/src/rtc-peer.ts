import { stopAtEnd } from './resources.js';

/**
 * A WebRTC peer without a browser: real encoders and decoders, usable against any signaling. Two of them in one process
 * take about 15 % of a core each; for more than a dozen, use something that sends packets instead of frames.
 */
export interface RtcPeer {
  /** `new`, `connecting`, `connected`, `disconnected`, `failed` or `closed`. */
  connectionState(): string;
  /** Sends a tone from now on. Offer afterwards. Returns what ends it. */
  addAudio(): RtcTrack;
  /** Sends a moving picture of that size, 15 times a second. Offer afterwards. */
  addVideo(size?: { width: number; height: number }): RtcTrack;
  /** Makes an offer and takes it for the local description. */
  offer(): Promise<string>;
  /** The answer to offer(). */
  acceptAnswer(sdp: string): Promise<void>;
  /** Takes an offer and returns the answer, which receives everything and sends nothing of its own. */
  answer(offerSdp: string): Promise<string>;
  /** A remote candidate; null and those that come before the remote description are fine. */
  addCandidate(candidate: RtcCandidate | null): Promise<void>;
  /** Calls back with each local candidate, null for the end; also with those that were there before. */
  onCandidate(listener: (candidate: RtcCandidate | null) => void): void;
  /** What arrived so far, by media section. */
  received(): ReadonlyMap<string, RtcReceived>;
  /** Frames of all sections together. */
  framesReceived(kind: 'audio' | 'video'): number;
  /** Idempotent; called when the test file ends. */
  close(): void;
}

export interface RtcTrack {
  /** The media section that carries it, once an offer was made. */
  mid(): string | null;
  /** The section is offered as inactive from the next offer on. */
  stop(): void;
}

export interface RtcReceived {
  kind: 'audio' | 'video';
  /** Pictures, or blocks of 10 ms. */
  frames: number;
}

export interface RtcCandidate {
  candidate: string;
  sdpMid?: string | null | undefined;
  sdpMLineIndex?: number | null | undefined;
}

export interface RtcPeerOptions {
  iceServers?: { urls: string | string[]; username?: string; credential?: string }[];
  /** `relay` sends everything through TURN. */
  iceTransportPolicy?: 'all' | 'relay';
}

const VIDEO_EVERY_MS = 66;
const AUDIO_EVERY_MS = 10;
const SAMPLE_RATE = 48_000;

/** Loads the WebRTC library, which most test files never need, and makes a peer. */
export async function createRtcPeer(options: RtcPeerOptions = {}): Promise<RtcPeer> {
  const { RTCPeerConnection, nonstandard } = await loadLibrary();
  const { RTCAudioSink, RTCAudioSource, RTCVideoSink, RTCVideoSource } = nonstandard;
  const connection = new RTCPeerConnection({
    iceServers: options.iceServers ?? [],
    iceTransportPolicy: options.iceTransportPolicy ?? 'all',
    bundlePolicy: 'max-bundle',
  });
  const stops: (() => void)[] = [];
  const received = new Map<string, RtcReceived>();
  const localCandidates: (RtcCandidate | null)[] = [];
  const candidateListeners: ((candidate: RtcCandidate | null) => void)[] = [];
  let early: RtcCandidate[] | undefined = [];
  let closed = false;

  connection.onicecandidate = ({ candidate }) => {
    const plain = candidate === null ? null : candidate.toJSON();
    localCandidates.push(plain);
    for (const listener of candidateListeners) listener(plain);
  };
  connection.ontrack = ({ track, transceiver }) => {
    const count: RtcReceived = { kind: track.kind, frames: 0 };
    const counted = () => {
      count.frames += 1;
      if (transceiver.mid !== null) received.set(transceiver.mid, count);
    };
    const sink =
      track.kind === 'audio'
        ? Object.assign(new RTCAudioSink(track), { ondata: counted })
        : Object.assign(new RTCVideoSink(track), { onframe: counted });
    stops.push(() => sink.stop());
  };

  const send = (track: Track, produce: () => void, everyMs: number): RtcTrack => {
    const transceiver = connection.addTransceiver(track, { direction: 'sendonly' });
    const timer = setInterval(produce, everyMs);
    const stop = () => {
      clearInterval(timer);
      track.stop();
    };
    stops.push(stop);
    return {
      mid: () => transceiver.mid,
      stop: () => {
        stop();
        if (!closed) transceiver.direction = 'inactive';
      },
    };
  };
  const remoteIsSet = async () => {
    const waiting = early ?? [];
    early = undefined;
    for (const candidate of waiting) await add(candidate);
  };
  const add = async (candidate: RtcCandidate) => {
    // One that cannot be used is not the end of the connection; a browser goes on too.
    await connection.addIceCandidate(candidate).catch(() => undefined);
  };

  const peer: RtcPeer = {
    connectionState: () => connection.connectionState,
    addAudio: () => {
      const source = new RTCAudioSource();
      const numberOfFrames = (SAMPLE_RATE * AUDIO_EVERY_MS) / 1_000;
      const samples = Int16Array.from({ length: numberOfFrames }, (_, i) => 8_000 * Math.sin((i * 2 * Math.PI) / 109));
      const block = { samples, sampleRate: SAMPLE_RATE, bitsPerSample: 16, channelCount: 1, numberOfFrames };
      return send(source.createTrack(), () => source.onData(block), AUDIO_EVERY_MS);
    },
    addVideo: ({ width, height } = { width: 160, height: 120 }) => {
      const source = new RTCVideoSource();
      const data = new Uint8ClampedArray((width * height * 3) / 2);
      let shade = 0;
      const produce = () => {
        shade = (shade + 16) % 256;
        source.onFrame({ width, height, data: data.fill(shade) });
      };
      return send(source.createTrack(), produce, VIDEO_EVERY_MS);
    },
    offer: async () => {
      await connection.setLocalDescription(await connection.createOffer());
      return sdpOf(connection);
    },
    acceptAnswer: async (sdp) => {
      await connection.setRemoteDescription({ type: 'answer', sdp });
      await remoteIsSet();
    },
    answer: async (offerSdp) => {
      await connection.setRemoteDescription({ type: 'offer', sdp: offerSdp });
      await remoteIsSet();
      await connection.setLocalDescription(await connection.createAnswer());
      return sdpOf(connection);
    },
    addCandidate: async (candidate) => {
      if (candidate === null || closed) return;
      if (early === undefined) await add(candidate);
      else early.push(candidate);
    },
    onCandidate: (listener) => {
      candidateListeners.push(listener);
      for (const candidate of localCandidates) listener(candidate);
    },
    received: () => received,
    framesReceived: (kind) => [...received.values()].reduce((sum, r) => sum + (r.kind === kind ? r.frames : 0), 0),
    close: () => {
      if (closed) return;
      closed = true;
      for (const stop of stops) stop();
      connection.close();
    },
  };
  stopAtEnd(() => {
    peer.close();
    return Promise.resolve();
  });
  return peer;
}

function sdpOf(connection: Connection): string {
  const { localDescription } = connection;
  if (localDescription === null) throw new Error('there is no local description');
  return localDescription.sdp;
}

/** What is used of the library; its own types want those of browsers. */
interface Library {
  RTCPeerConnection: new (configuration: object) => Connection;
  nonstandard: {
    RTCAudioSource: new () => { createTrack(): Track; onData(block: object): void };
    RTCVideoSource: new () => { createTrack(): Track; onFrame(frame: object): void };
    RTCAudioSink: new (track: Track) => Sink;
    RTCVideoSink: new (track: Track) => Sink;
  };
}
interface Track {
  kind: 'audio' | 'video';
  stop(): void;
}
interface Sink {
  stop(): void;
}
interface Transceiver {
  readonly mid: string | null;
  direction: string;
}
interface Description {
  type: string;
  sdp: string;
}
interface Connection {
  readonly connectionState: string;
  readonly localDescription: Description | null;
  onicecandidate: ((event: { candidate: { toJSON(): RtcCandidate } | null }) => void) | null;
  ontrack: ((event: { track: Track; transceiver: Transceiver }) => void) | null;
  addTransceiver(track: Track, options: object): Transceiver;
  createOffer(): Promise<Description>;
  createAnswer(): Promise<Description>;
  setLocalDescription(description: Description): Promise<void>;
  setRemoteDescription(description: Description): Promise<void>;
  addIceCandidate(candidate: RtcCandidate): Promise<void>;
  close(): void;
}

async function loadLibrary(): Promise<Library> {
  const { default: library } = (await import('@roamhq/wrtc')) as unknown as { default: Library };
  return library;
}
