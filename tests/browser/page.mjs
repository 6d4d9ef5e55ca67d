/** Runs inside the pages of these tests: a participant that a test controls from outside. */
import { connect } from '/sdk/index.js';

const EVENTS = [
  'state',
  'closed',
  'participantJoined',
  'participantLeft',
  'trackPublished',
  'trackUnpublished',
  'trackSubscribed',
  'trackQuality',
  'message',
  'mediaState',
  'problem',
];
/** They decide which video is sent and received, and over which path. */
const VIDEO_MESSAGES = ['subscribe', 'subscribed', 'layersWanted', 'refreshVideo', 'restartIce', 'offer', 'mediaReset'];
/** Low resolution and frame rate: these tests only check that media flows. */
const SMALL = { width: 160, height: 120, frameRate: 10 };

let call;
const events = [];
const frames = [];
/** The element that plays a participant's video, by name. */
const screens = new Map();

/** A WebSocket that records all messages and lets a test alter them. */
function recording(alter = {}) {
  return class extends WebSocket {
    send(data) {
      const message = alter.send?.(JSON.parse(data)) ?? JSON.parse(data);
      frames.push({ way: 'sent', message, atMs: performance.now() });
      super.send(JSON.stringify(message));
    }
    set onmessage(listener) {
      super.onmessage = (event) => {
        const message = alter.receive?.(JSON.parse(event.data)) ?? JSON.parse(event.data);
        frames.push({ way: 'received', message, atMs: performance.now() });
        listener({ data: JSON.stringify(message) });
      };
    }
  };
}

/** The port that all relays are reached at instead of their own, such as that of a slow line; undefined: their own. */
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

/** How long the SDK has paused the one received video because of the network, without a pause that goes on. */
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
  constructor(configuration) {
    super(relayed(configuration));
    connections.push(this);
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
          if (timestamp !== last[kind]) arrived(kind, timestamp);
        }
      }
    }
  }, 10);
}

/** Size of the elements that show video; undefined: as large as their picture. */
let tile;

/** Attaches the track to an element, as a page would: some browsers do not decode a track without one. */
function play(track) {
  if (tile !== undefined) {
    const element = track.attach();
    if (track.kind === 'video') element.style = `width: ${tile.width}px; height: ${tile.height}px`;
    document.body.append(element);
    return;
  }
  const element = document.createElement(track.kind);
  element.autoplay = true;
  element.muted = track.kind === 'video';
  element.srcObject = new MediaStream([track.mediaStreamTrack]);
  document.body.append(element);
  if (track.kind !== 'video') return;
  screens.set(track.participant.name, element);
}

/** Brightness in the middle of the picture that an element shows. */
function shadeOf(element) {
  if (element.videoWidth === 0) return null;
  const canvas = new OffscreenCanvas(1, 1).getContext('2d');
  canvas.drawImage(element, element.videoWidth / 2, element.videoHeight / 2, 1, 1, 0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data[1];
}

const tracksOf = (names) =>
  [...call.participants.values()]
    .filter(({ name }) => names.includes(name))
    .flatMap(({ participantId, tracks }) => [...tracks.keys()].map((trackId) => ({ participantId, trackId })));

/** The sections of a session description, each with its text; the first one belongs to the session. */
const sectionsOf = (sdp) => sdp.split(/(?=^m=)/m);
const directVideo = (sdp, direction) =>
  sectionsOf(sdp)
    .map((section) =>
      section.startsWith('m=video')
        ? section.replace(/^a=(sendrecv|sendonly|recvonly|inactive)\r?$/m, `a=${direction}\r`)
        : section,
    )
    .join('');

/** Adds the permission to the welcome message, so that the SDK does not refuse by itself. */
const permitVideo = (message) =>
  message.type === 'welcome' ? { ...message, permissions: [...message.permissions, 'video:publish'] } : message;
const onPublish = (change) => (message) => (message.type === 'publish' ? { ...message, ...change(message) } : message);
const withoutCamera = ({ tracks }) => tracks.filter(({ source }) => source !== 'camera');

/** Clients that try to send video without the permission. */
const HOSTILE = {
  'declares it': { receive: permitVideo },
  'does not declare it': { receive: permitVideo, send: onPublish((m) => ({ tracks: withoutCamera(m) })) },
  'calls it a microphone': {
    receive: permitVideo,
    send: onPublish(({ tracks }) => ({ tracks: tracks.map((track) => ({ ...track, source: 'microphone' })) })),
  },
  'calls it a screen': {
    receive: permitVideo,
    send: onPublish(({ tracks }) => ({
      tracks: tracks.map((track) => (track.source === 'camera' ? { ...track, source: 'screen' } : track)),
    })),
  },
  'says that it does not send, and sends': {
    receive: (message) =>
      message.type === 'published' ? { ...message, sdp: directVideo(message.sdp, 'recvonly') } : permitVideo(message),
    send: onPublish((m) => ({ tracks: withoutCamera(m), sdp: directVideo(m.sdp, 'recvonly') })),
  },
};

globalThis.participant = {
  async join({ publish, hostile, relayThrough, tile: size, ...options }) {
    relayPort = relayThrough;
    tile = size;
    call = await connect({
      ...options,
      platform: { WebSocket: recording(HOSTILE[hostile]), RTCPeerConnection: RecordedConnection },
    });
    for (const name of EVENTS) {
      call.on(name, (event) => {
        const { reason, code, message, data, trackId, participantId, participant, quality, track } = event;
        const what =
          typeof event === 'string' ? event : { reason, code, message, data, trackId, participantId, quality };
        const by = (participant ?? track?.participant)?.name;
        events.push({ name, what, by, atMs: performance.timeOrigin + performance.now() });
      });
    }
    for (const { tracks } of call.participants.values()) {
      for (const track of tracks.values()) if (track.mediaStreamTrack) play(track);
    }
    call.on('trackSubscribed', play);
    if (publish === true) await this.publish({ audio: true, video: true });
    else if (publish) await this.publish(publish);
    const { sessionId } = call;
    return { sessionId, participantId: call.participant.participantId };
  },
  /** Resolves to the error code, or to null on success. */
  async publish({ video, ...rest }) {
    return this.codeOf(() => call.publish({ ...rest, video: video === true ? SMALL : video }));
  },
  /**
   * Further participants of this page, one for each token: each publishes the same camera and microphone. The first one
   * shows those who are there already and speaks; the others receive nothing and are silent. The microphone is sent as
   * it is, because its processing costs more than all the rest of them.
   */
  async enterOthers({ tokens, camera, simulcast, tile: size, ...options }) {
    const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    const devices = await navigator.mediaDevices.getUserMedia({ audio, video: camera ?? false });
    const [[microphone], [picture]] = [devices.getAudioTracks(), devices.getVideoTracks()];
    tile = size;
    const publish = async (other, isSpeaking) => {
      const sound = Object.assign(microphone.clone(), { enabled: isSpeaking });
      await other.publish(sound, { source: 'microphone' });
      if (picture) await other.publish(picture.clone(), { source: 'camera', simulcast });
    };
    const [first, ...rest] = tokens;
    const watching = await connect({ ...options, token: first, autoSubscribe: false });
    watching.on('trackSubscribed', play);
    const present = [...watching.participants.values()].flatMap(({ participantId, tracks }) =>
      [...tracks.keys()].map((trackId) => ({ participantId, trackId })),
    );
    await watching.subscribe(...present);
    await publish(watching, true);
    const silent = await Promise.all(rest.map((token) => connect({ ...options, token, autoSubscribe: false })));
    await Promise.all(silent.map((other) => publish(other, false)));
  },
  async codeOf(task) {
    try {
      await task();
      return null;
    } catch (error) {
      return error.code ?? String(error);
    }
  },
  joinCode(options) {
    return this.codeOf(() => this.join(options));
  },
  shareScreen: () => call.shareScreen({ video: SMALL }).then((tracks) => tracks.map(({ trackId }) => trackId)),
  unpublish: (trackId) => call.unpublish(trackId),
  mute: (trackId) => call.mute(trackId),
  unmute: (trackId) => call.unmute(trackId),
  send: (data) => call.send(data),
  leave: () => call.leave(),
  subscribe: (names) => call.subscribe(...tracksOf(names)),
  unsubscribe: (names) => call.unsubscribe(...tracksOf(names)),
  /** Names of those who publish a camera. */
  publishing: () =>
    [...call.participants.values()].filter(({ tracks }) => tracks.has('camera')).map(({ name }) => name),
  /** Brightness of the pictures of those participants whose video is received, by name. */
  shades: () =>
    Object.fromEntries(
      [...call.participants.values()]
        .filter(({ tracks }) => [...tracks.values()].some((track) => track.mediaStreamTrack))
        .map(({ name }) => [name, screens.has(name) ? shadeOf(screens.get(name)) : null]),
    ),
  activeSpeakers: () =>
    call.activeSpeakers.map(({ name, isSpeaking, audioLevel }) => ({ name, isSpeaking, audioLevel })),
  state: () => call.state,
  mediaState: () => call.mediaState,
  closeInfo: () => call.closeInfo,
  ids: () => ({ sessionId: call.sessionId, participantId: call.participant.participantId }),
  events: () => events,
  frames: () => frames,
  /** What happened to the video, the oldest first: messages without their descriptions, and changes of the quality. */
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
  /** Sums of the receiving connection's counters; `height` is that of the present picture. */
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
        // What stands still for more than five seconds is a pause.
        meter.frozenSeconds += (entry.totalFreezesDuration ?? 0) + (entry.totalPausesDuration ?? 0);
        meter.height = Math.max(meter.height, entry.frameHeight ?? 0);
      }
    }
    // The page says so when the network carries no picture: what it shows then is not frozen.
    meter.frozenSeconds = Math.max(0, meter.frozenSeconds - pausedSeconds());
    return { ...meter, atMs: performance.now() };
  },
  async statsOf(target) {
    const { [target]: report } = await call.getStats();
    return [...(report?.values() ?? [])];
  },
  /** Counters of sent packets by kind. */
  async sent() {
    const { publisher } = await call.getStats();
    const sums = { audio: 0, video: 0 };
    for (const entry of publisher?.values() ?? []) {
      if (entry.type === 'outbound-rtp') sums[entry.kind] += entry.packetsSent;
    }
    return sums;
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
