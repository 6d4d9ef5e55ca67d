import { stopAtEnd } from './resources.js';

/**
 * A WebRTC peer without a browser: real encoders and decoders, independent of any signaling. Two peers in one process
 * take about 15 % of a core each. For more than a dozen, use a tool that sends packets instead of frames.
 */
export interface RtcPeer {
  /** `new`, `connecting`, `connected`, `disconnected`, `failed` or `closed`. */
  connectionState(): string;
  /** Starts sending a tone; make an offer afterwards. `stop()` of the returned track ends it. */
  addAudio(options?: RtcAudioOptions): RtcAudioTrack;
  /** Starts sending a moving picture; make an offer afterwards. */
  addVideo(options?: RtcVideoOptions): RtcTrack;
  /** Makes an offer and sets it as the local description. */
  offer(options?: { iceRestart?: boolean }): Promise<string>;
  /** The local description as it is now, with the candidates found so far. */
  localSdp(): string;
  /** Accepts the answer to offer(). */
  acceptAnswer(sdp: string): Promise<void>;
  /** Accepts an offer and returns the answer, which receives every track and sends none. */
  answer(offerSdp: string): Promise<string>;
  /** Calls back with each local candidate, including earlier ones; null marks the end. */
  onCandidate(listener: (candidate: RtcCandidate | null) => void): void;
  /** The media received so far, by media section. */
  received(): ReadonlyMap<string, RtcReceived>;
  /** Frames of all sections together. */
  framesReceived(kind: 'audio' | 'video'): number;
  /** How often the peer was asked for a key frame of the video that it sends. */
  keyFrameRequests(): Promise<number>;
  /** Idempotent; called at the end of the test file. */
  close(): void;
}

export interface RtcTrack {
  /** The media section of the track, once an offer was made. */
  mid(): string | null;
  /** Stops sending. The next offer marks the section as inactive. */
  stop(): void;
}

export interface RtcAudioTrack extends RtcTrack {
  /** Switches to a tone of this amplitude, from 0 to 1. */
  speak(amplitude?: number): void;
  /** Switches to silence. */
  silence(): void;
}

interface RtcAudioOptions {
  /** False sends nothing at all until `speak()`: such a track costs no processor time. Default true. */
  sends?: boolean;
}

interface RtcVideoOptions {
  width?: number;
  height?: number;
  /** The pause between two pictures in milliseconds; default 66. */
  everyMs?: number;
  /** Brightness of all pictures, from 0 to 255. By default each picture has another one. */
  shade?: number;
  /** Names of layers, each of half the width of the one before; default: one layer. Two need a picture of 640×360. */
  layers?: readonly string[];
  /** Whether the offer names the smallest layer first. */
  isSmallestFirst?: boolean;
}

interface RtcReceived {
  kind: 'audio' | 'video';
  /** Pictures, or blocks of 10 ms. */
  frames: number;
  /** Brightness in the middle of the last picture, from 0 to 255; null before the first one. */
  shade: number | null;
  /** Of the last picture. */
  width: number | null;
}

interface RtcCandidate {
  candidate: string;
  sdpMid?: string | null | undefined;
  sdpMLineIndex?: number | null | undefined;
}

const VIDEO_EVERY_MS = 66;
const AUDIO_EVERY_MS = 10;
const SAMPLE_RATE = 48_000;
/** Of the tone that microphones send. */
const DEFAULT_AMPLITUDE = 0.25;

/** Creates a peer. Loads the WebRTC library only here, because most test files never need it. */
export async function createRtcPeer(): Promise<RtcPeer> {
  const { RTCPeerConnection, nonstandard } = await loadLibrary();
  const { RTCAudioSink, RTCAudioSource, RTCVideoSink, RTCVideoSource } = nonstandard;
  const connection = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
  const stops: (() => void)[] = [];
  const received = new Map<string, RtcReceived>();
  const localCandidates: (RtcCandidate | null)[] = [];
  const candidateListeners: ((candidate: RtcCandidate | null) => void)[] = [];
  let closed = false;

  connection.onicecandidate = ({ candidate }) => {
    const plain = candidate === null ? null : candidate.toJSON();
    localCandidates.push(plain);
    for (const listener of candidateListeners) listener(plain);
  };
  connection.ontrack = ({ track, transceiver }) => {
    const count: RtcReceived = { kind: track.kind, frames: 0, shade: null, width: null };
    const counted = (data?: { frame?: { data: Uint8ClampedArray; width: number; height: number } }) => {
      count.frames += 1;
      const frame = data?.frame;
      if (frame !== undefined) {
        count.shade = frame.data[(frame.width * (frame.height + 1)) >> 1] ?? null;
        count.width = frame.width;
      }
      if (transceiver.mid !== null) received.set(transceiver.mid, count);
    };
    const sink =
      track.kind === 'audio'
        ? Object.assign(new RTCAudioSink(track), { ondata: counted })
        : Object.assign(new RTCVideoSink(track), { onframe: counted });
    stops.push(() => sink.stop());
  };

  const send = (
    track: Track,
    produce: () => void,
    everyMs: number,
    { layers = [], isSmallestFirst = false }: RtcVideoOptions = {},
  ): RtcTrack & { start(): void } => {
    const sendEncodings = layers.map((rid, at) => ({ rid, scaleResolutionDownBy: 2 ** at }));
    if (isSmallestFirst) sendEncodings.reverse();
    const transceiver = connection.addTransceiver(track, { direction: 'sendonly', sendEncodings });
    let timer: NodeJS.Timeout | undefined;
    const stop = () => {
      clearInterval(timer);
      track.stop();
    };
    stops.push(stop);
    return {
      start: () => {
        timer ??= setInterval(produce, everyMs);
      },
      mid: () => transceiver.mid,
      stop: () => {
        stop();
        if (!closed) transceiver.direction = 'inactive';
      },
    };
  };

  const peer: RtcPeer = {
    connectionState: () => connection.connectionState,
    addAudio: ({ sends = true } = {}) => {
      const source = new RTCAudioSource();
      let block = toneOf(DEFAULT_AMPLITUDE);
      const track = send(source.createTrack(), () => source.onData(block), AUDIO_EVERY_MS);
      const goOn = (amplitude: number) => {
        block = toneOf(amplitude);
        track.start();
      };
      if (sends) track.start();
      return Object.assign(track, {
        speak: (amplitude = DEFAULT_AMPLITUDE) => goOn(amplitude),
        silence: () => goOn(0),
      });
    },
    addVideo: (options = {}) => {
      const { width = 160, height = 120, everyMs = VIDEO_EVERY_MS, shade: fixed } = options;
      const source = new RTCVideoSource();
      const data = new Uint8ClampedArray((width * height * 3) / 2);
      let shade = 0;
      const produce = () => {
        shade = fixed ?? (shade + 16) % 256;
        source.onFrame({ width, height, data: data.fill(shade) });
      };
      const track = send(source.createTrack(), produce, everyMs, options);
      track.start();
      return track;
    },
    offer: async (options = {}) => {
      await connection.setLocalDescription(await connection.createOffer(options));
      return sdpOf(connection);
    },
    localSdp: () => sdpOf(connection),
    acceptAnswer: (sdp) => connection.setRemoteDescription({ type: 'answer', sdp }),
    answer: async (offerSdp) => {
      await connection.setRemoteDescription({ type: 'offer', sdp: offerSdp });
      await connection.setLocalDescription(await connection.createAnswer());
      return sdpOf(connection);
    },
    onCandidate: (listener) => {
      candidateListeners.push(listener);
      for (const candidate of localCandidates) listener(candidate);
    },
    received: () => received,
    keyFrameRequests: async () =>
      [...(await connection.getStats()).values()].reduce((sum, { pliCount = 0 }) => sum + pliCount, 0),
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

/** A block of 10 ms. */
function toneOf(amplitude: number): object {
  const numberOfFrames = (SAMPLE_RATE * AUDIO_EVERY_MS) / 1_000;
  const peak = amplitude * 32_767;
  const samples = Int16Array.from({ length: numberOfFrames }, (_, i) => peak * Math.sin((i * 2 * Math.PI) / 109));
  return { samples, sampleRate: SAMPLE_RATE, bitsPerSample: 16, channelCount: 1, numberOfFrames };
}

function sdpOf(connection: Connection): string {
  const { localDescription } = connection;
  if (localDescription === null) throw new Error('there is no local description');
  return localDescription.sdp;
}

/** The part of the library that this file uses; the library's own types require browser types. */
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
  createOffer(options: object): Promise<Description>;
  createAnswer(): Promise<Description>;
  setLocalDescription(description: Description): Promise<void>;
  setRemoteDescription(description: Description): Promise<void>;
  getStats(): Promise<Map<string, { pliCount?: number }>>;
  close(): void;
}

async function loadLibrary(): Promise<Library> {
  const { default: library } = (await import('@roamhq/wrtc')) as unknown as { default: Library };
  return library;
}
