/** Runs inside the pages of these tests: a participant that a test controls from outside. */
import { connect, testConnection } from '/sdk/index.js';

const EVENTS = [
  'state',
  'closed',
  'moved',
  'participantJoined',
  'participantLeft',
  'trackPublished',
  'trackUnpublished',
  'trackSubscribed',
  'trackQuality',
  'message',
  'mediaState',
  'problem',
  'encryptionError',
];
/** They decide which video is sent and received, and over which path. */
const VIDEO_MESSAGES = ['subscribe', 'subscribed', 'layersWanted', 'refreshVideo', 'restartIce', 'offer', 'mediaReset'];
/** Low resolution and frame rate: these tests only check that media flows. */
const SMALL = { width: 160, height: 120, frameRate: 10 };

let call;
const events = [];
const frames = [];

/** A WebSocket that records all messages. */
class RecordedSocket extends WebSocket {
  send(data) {
    frames.push({ way: 'sent', message: JSON.parse(data), atMs: performance.now() });
    super.send(data);
  }
  set onmessage(listener) {
    super.onmessage = (event) => {
      frames.push({ way: 'received', message: JSON.parse(event.data), atMs: performance.now() });
      listener(event);
    };
  }
}

/** The port that all relays are reached at, such as the port of a slow line; undefined: their own. */
let relayPort;
const relayed = (configuration) => ({
  ...configuration,
  iceServers: configuration.iceServers?.map(({ urls, ...rest }) => ({
    ...rest,
    urls: [urls].flat().flatMap((url) => (relayPort === undefined ? url : throughPort(url))),
  })),
});
/** Only UDP: the line carries nothing else. */
const throughPort = (url) => (url.endsWith('transport=udp') ? [url.replace(/:\d+\?/, `:${relayPort}?`)] : []);

async function hashOf(blob) {
  const hash = await crypto.subtle.digest('SHA-256', await blob.arrayBuffer());
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** How long the SDK has paused the one received video because of the network, without a pause that still lasts. */
function pausedSeconds() {
  const changes = events.filter(({ name }) => name === 'trackQuality');
  const pausedMs = changes.slice(1).reduce((sum, { atMs }, at) => {
    const before = changes[at];
    return before.what.quality === 'paused' ? sum + atMs - before.atMs : sum;
  }, 0);
  return pausedMs / 1000;
}

/** Every peer connection that the SDK has made. */
const connections = [];
class RecordedConnection extends RTCPeerConnection {
  /** When it was connected first, with ICE alone and with DTLS as well. */
  connectedMs = {};
  constructor(configuration) {
    super(relayed(configuration));
    connections.push(this);
    for (const state of ['iceConnectionState', 'connectionState']) {
      this.addEventListener(`${state.toLowerCase()}change`, () => {
        if (this[state] === 'connected') this.connectedMs[state] ??= performance.now();
      });
    }
  }
  setConfiguration(configuration) {
    super.setConfiguration(relayed(configuration));
  }
}

/**
 * The longest pauses between two received pictures, and between two received blocks of audio, in milliseconds. They come
 * from the receivers and not from the elements: Chromium does not report each picture that it shows if the machine is
 * busy, or if the page is hidden.
 */
const longest = { video: 0, audio: 0 };
const last = { video: undefined, audio: undefined };
function arrived(kind, atMs) {
  if (last[kind] !== undefined) longest[kind] = Math.max(longest[kind], atMs - last[kind]);
  last[kind] = atMs;
}
function watchReceivers() {
  setInterval(() => {
    for (const connection of connections) {
      for (const receiver of connection.getReceivers()) {
        const { kind } = receiver.track;
        for (const { timestamp } of receiver.getSynchronizationSources()) {
          // A connection that was closed keeps its last time.
          if (!(timestamp <= last[kind])) arrived(kind, timestamp);
        }
      }
    }
  }, 10);
}

/** The worker of an encrypted call, which also tells the frames that it has seen. */
let spy;
function openSpy() {
  spy = new Worker('/spy-worker.mjs', { type: 'module' });
  return spy;
}

/** Attaches the track to an element, as a page would: some browsers do not decode a track without one. */
function play(track) {
  const element = document.createElement(track.kind);
  element.autoplay = true;
  element.muted = track.kind === 'video';
  element.srcObject = new MediaStream([track.mediaStreamTrack]);
  document.body.append(element);
}

let shown;

let joinedAt;

/** When the first picture of each received video came. */
const firstPictures = [];
async function watchFirstPicture({ kind, mediaStreamTrack }) {
  if (kind !== 'video') return;
  const reader = new MediaStreamTrackProcessor({ track: mediaStreamTrack }).readable.getReader();
  const { value } = await reader.read();
  firstPictures.push(performance.now());
  value?.close();
  await reader.cancel();
}

/** Shows a video in a tile that the layer of 320×180 is enough for, as a page with several people does. */
function showInTile({ kind, attach }) {
  const element = attach();
  if (kind === 'video') Object.assign(element.style, { width: '320px', height: '180px' });
  document.body.append(element);
}

globalThis.participant = {
  /**
   * @param isTimed `joinParts` is asked later
   * @param isTiled all that others publish is shown in tiles
   */
  async join({ publish, relayThrough, isSpied, isTimed, isTiled, ...options }) {
    relayPort = relayThrough;
    if (isSpied) options.encryption.worker = openSpy;
    joinedAt = performance.now();
    call = await connect({
      ...options,
      platform: { WebSocket: RecordedSocket, RTCPeerConnection: RecordedConnection },
    });
    for (const name of EVENTS) {
      call.on(name, (event) => {
        const { reason, code, message, data, trackId, participantId, participant, quality } = event;
        const what =
          typeof event === 'string' ? event : { reason, code, message, data, trackId, participantId, quality };
        const by = (participant ?? call.participants.get(participantId))?.name;
        events.push({ name, what, by, atMs: performance.timeOrigin + performance.now() });
      });
    }
    const received = (track) => {
      if (!isTiled) play(track);
      if (isTimed) watchFirstPicture(track);
    };
    for (const { tracks } of call.participants.values()) {
      for (const track of tracks.values()) {
        if (isTiled) showInTile(track);
        if (track.mediaStreamTrack) received(track);
      }
    }
    call.on('trackSubscribed', received);
    if (isTiled) call.on('trackPublished', showInTile);
    if (publish === true) await this.publish({ audio: true, video: true });
    else if (publish) await this.publish(publish);
    const { sessionId } = call;
    return { sessionId, participantId: call.participant.participantId };
  },
  /** Resolves to the error code, or to null on success. */
  async publish({ video, ...rest }) {
    return this.codeOf(() => call.publish({ ...rest, video: video === true ? SMALL : video }));
  },
  async codeOf(task) {
    try {
      await task();
      return null;
    } catch (error) {
      return error.code ?? String(error);
    }
  },
  shareScreen: () => call.shareScreen({ video: SMALL }).then((tracks) => tracks.map(({ trackId }) => trackId)),
  unpublish: (trackId) => call.unpublish(trackId),
  mute: (trackId) => call.mute(trackId),
  unmute: (trackId) => call.unmute(trackId),
  replace: async (trackId) => {
    const media = await navigator.mediaDevices.getUserMedia({ video: SMALL });
    await call.replaceTrack(trackId, media.getVideoTracks()[0]);
  },
  /** A busy machine must not make the pictures smaller: Chromium drops layers of small ones. */
  async keepResolution() {
    for (const sender of connections.flatMap((connection) => connection.getSenders())) {
      if (sender.track?.kind === 'video')
        await sender.setParameters({ ...sender.getParameters(), degradationPreference: 'maintain-resolution' });
    }
  },
  receiveLayer: ([name, spatial]) => {
    const { participantId } = [...call.participants.values()].find((one) => one.name === name);
    return call.subscribeTracks({ participantId, trackId: 'camera', layer: { spatial } });
  },
  /** Shows a camera in an element, or hides it there. */
  show([name, isShown]) {
    const { tracks } = [...call.participants.values()].find((one) => one.name === name);
    shown ??= tracks.get('camera').attach();
    document.body.append(shown);
    shown.style.display = isShown ? '' : 'none';
  },
  encryption: () => ({ ...call.encryption }),
  rotate: ([key, options]) => call.encryption.rotate(key, options),
  ratchet: () => call.encryption.ratchet(),
  /** The `notes` of spy-worker.mjs, which grow, or its `counts`. */
  spied: (what) =>
    new Promise((resolve) => {
      const listener = ({ data }) => {
        if (data.type !== 'spied') return;
        spy.removeEventListener('message', listener);
        resolve(data.notes);
      };
      spy.addEventListener('message', listener);
      spy.postMessage(what);
    }),
  attack: (attack) => spy.postMessage({ attack }),
  undecryptable: () =>
    [...call.participants.values()].flatMap(({ name, tracks }) =>
      [...tracks.values()].filter((track) => track.isUndecryptable).map(({ trackId }) => `${name}/${trackId}`),
    ),
  mutedOf: (name) => {
    const { tracks } = [...call.participants.values()].find((one) => one.name === name);
    return [...tracks.values()].filter(({ muted }) => muted).map(({ trackId }) => trackId);
  },
  send: (data) => call.send(data),
  sendTo: ([data, ...to]) => call.send(data, { to }),
  receiveStreams: () => {
    call.handleStream('files', async (stream) => {
      const { name, contentType, size, attributes } = stream;
      const blob = await stream.blob();
      events.push({ name: 'stream', what: { name, contentType, size, attributes, hash: await hashOf(blob) } });
    });
  },
  /** Sends random bytes after a secret, and says whether the gateway has seen the secret or the name. */
  sendFile: async (size) => {
    const bytes = new Uint8Array(size);
    for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
    bytes.set(new TextEncoder().encode('my secret'));
    const file = new File([bytes], 'film.mp4', { type: 'video/mp4' });
    const progress = [];
    const { delivered, failed } = await call.sendStream('files', file, {
      attributes: { scene: '7' },
      onProgress: ({ bytes: arrived }) => progress.push(arrived),
    });
    const isSeen = frames.some(
      ({ way, message }) =>
        way === 'sent' &&
        ((message.type === 'part' && atob(message.data).includes('my secret')) ||
          (message.type === 'stream' && JSON.stringify(message).includes('film.mp4'))),
    );
    return { hash: await hashOf(file), delivered: delivered.length, failed: failed.size, progress, isSeen };
  },
  leave: () => call.leave(),
  state: () => call.state,
  mediaState: () => call.mediaState,
  closeInfo: () => call.closeInfo,
  ids: () => ({ sessionId: call.sessionId, participantId: call.participant.participantId }),
  events: () => events,
  frames: () => frames,
  /** Milliseconds from the call of `join` to the steps of receiving; `pictures` has the first one of each video. */
  joinParts() {
    const at = (type) => frames.find(({ message }) => message.type === type && message.target !== 'publisher')?.atMs;
    const { connectedMs } =
      connections.find((one) => one.getTransceivers().some(({ direction }) => direction === 'recvonly')) ?? {};
    const parts = {
      welcome: at('welcome'),
      offer: at('offer'),
      answer: at('answer'),
      candidate: at('candidate'),
      ice: connectedMs?.iceConnectionState,
      dtls: connectedMs?.connectionState,
      pictures: firstPictures,
    };
    const sinceJoin = (ms) => (Array.isArray(ms) ? ms.map(sinceJoin) : ms - joinedAt);
    return Object.fromEntries(Object.entries(parts).map(([name, ms]) => [name, sinceJoin(ms)]));
  },
  /** Events of the video, the oldest first: messages without their descriptions, and changes of the quality. */
  videoHistory() {
    const noted = frames
      .filter(({ message }) => VIDEO_MESSAGES.includes(message.type))
      .map(({ way, atMs, message: { sdp: _sdp, ...rest } }) => [Math.round(atMs), way, rest]);
    const changed = events
      .filter(({ name }) => name === 'trackQuality')
      .map(({ by, what, atMs }) => [Math.round(atMs - performance.timeOrigin), by, what.quality]);
    return [...noted, ...changed].sort(([a], [b]) => a - b).slice(-40);
  },
  /** Number of peer connections that were made so far, and of offers that were sent or received. */
  negotiations: () => ({
    connections: connections.length,
    offers: frames.filter(({ message }) => message.type === 'offer' || message.type === 'publish').length,
  }),
  /** Starts to measure the longest pauses of one received video and one received audio track. */
  measurePauses() {
    Object.assign(longest, { video: 0, audio: 0 });
    Object.assign(last, { video: undefined, audio: undefined });
    watchReceivers();
  },
  pauses: () => ({ video: Math.round(longest.video), audio: Math.round(longest.audio) }),
  /** The other participants by name, with the ids of the tracks that are received from each. */
  others: () =>
    Object.fromEntries(
      [...call.participants.values()].map(({ name, tracks }) => [
        name,
        [...tracks.values()].filter((track) => track.mediaStreamTrack).map(({ trackId }) => trackId),
      ]),
    ),
  /** Counters of received media by name of the sender. */
  async received() {
    const { subscriber } = await call.getStats();
    const sums = {};
    for (const { name, tracks } of call.participants.values()) {
      const ids = new Set([...tracks.values()].map((track) => track.mediaStreamTrack?.id));
      const sum = (sums[name] = { packets: 0, frames: 0, samples: 0 });
      for (const entry of subscriber?.values() ?? []) {
        if (entry.type !== 'inbound-rtp' || !ids.has(entry.trackIdentifier)) continue;
        sum.packets += entry.packetsReceived ?? 0;
        sum.frames += entry.framesDecoded ?? 0;
        sum.samples += entry.totalSamplesReceived ?? 0;
      }
    }
    return sums;
  },
  /** Sums of the receiving connection's counters; `height` belongs to the present picture. */
  async meter() {
    const { subscriber } = await call.getStats();
    const meter = { frames: 0, freezes: 0, frozenSeconds: 0, concealed: 0, samples: 0, bytes: 0, lost: 0, height: 0 };
    for (const entry of subscriber?.values() ?? []) {
      if (entry.type !== 'inbound-rtp') continue;
      meter.bytes += entry.bytesReceived + (entry.headerBytesReceived ?? 0);
      meter.lost += entry.packetsLost;
      if (entry.kind === 'audio') {
        meter.concealed += entry.concealedSamples - (entry.silentConcealedSamples ?? 0);
        meter.samples += entry.totalSamplesReceived;
      } else {
        meter.frames += entry.framesDecoded ?? 0;
        meter.freezes += entry.freezeCount ?? 0;
        // A freeze of more than five seconds is a pause.
        meter.frozenSeconds += (entry.totalFreezesDuration ?? 0) + (entry.totalPausesDuration ?? 0);
        meter.height = Math.max(meter.height, entry.frameHeight ?? 0);
      }
    }
    // The page says so when the network carries no picture: the picture is not frozen then.
    meter.frozenSeconds = Math.max(0, meter.frozenSeconds - pausedSeconds());
    return { ...meter, atMs: performance.now() };
  },
  testConnection: (options) => testConnection(options),
  async statsOf(target) {
    const { [target]: report } = await call.getStats();
    return [...(report?.values() ?? [])];
  },
  /** The relay protocol of each peer connection: `udp` or `tcp` when relayed, else `none`. */
  async relays() {
    const { publisher, subscriber } = await call.getStats();
    return [publisher, subscriber].map((report) => {
      const all = [...(report?.values() ?? [])];
      const transport = all.find(({ type }) => type === 'transport');
      const pair = all.find(({ id }) => id === transport?.selectedCandidatePairId);
      const local = all.find(({ id }) => id === pair?.localCandidateId);
      return local?.candidateType === 'relay' ? local.relayProtocol : 'none';
    });
  },
};
