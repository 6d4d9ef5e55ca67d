/** What runs inside the pages of these tests: a participant that tests ask from outside. */
import { connect } from '/sdk/index.js';

const EVENTS = [
  'state',
  'closed',
  'participantJoined',
  'participantLeft',
  'trackPublished',
  'trackUnpublished',
  'trackSubscribed',
  'message',
  'mediaState',
  'problem',
];
/** Small pictures, few of them: these tests are about whether media flows. */
const SMALL = { width: 160, height: 120, frameRate: 10 };

let call;
const events = [];
const frames = [];

/** Writes down what is said over signaling, and lets a test change it on its way. */
function recording(alter = {}) {
  return class extends WebSocket {
    send(data) {
      const message = alter.send?.(JSON.parse(data)) ?? JSON.parse(data);
      frames.push({ way: 'sent', message });
      super.send(JSON.stringify(message));
    }
    set onmessage(listener) {
      super.onmessage = (event) => {
        const message = alter.receive?.(JSON.parse(event.data)) ?? JSON.parse(event.data);
        frames.push({ way: 'received', message });
        listener({ data: JSON.stringify(message) });
      };
    }
  };
}

/** Shows and plays, as a page would: what nobody looks at some browsers do not decode. */
function play(track) {
  const element = document.createElement(track.kind);
  element.autoplay = true;
  element.muted = track.kind === 'video';
  element.srcObject = new MediaStream([track.mediaStreamTrack]);
  document.body.append(element);
}

/** The sections of a description, each with its text; the first is the session's. */
const sectionsOf = (sdp) => sdp.split(/(?=^m=)/m);
const directVideo = (sdp, direction) =>
  sectionsOf(sdp)
    .map((section) =>
      section.startsWith('m=video')
        ? section.replace(/^a=(sendrecv|sendonly|recvonly|inactive)\r?$/m, `a=${direction}\r`)
        : section,
    )
    .join('');

/** A welcome that lies to the SDK, so that it does not refuse by itself. */
const permitVideo = (message) =>
  message.type === 'welcome' ? { ...message, permissions: [...message.permissions, 'video:publish'] } : message;
const onPublish = (change) => (message) => (message.type === 'publish' ? { ...message, ...change(message) } : message);
const withoutCamera = ({ tracks }) => tracks.filter(({ source }) => source !== 'camera');

/** Clients that want to send video without the permission. */
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
  async join({ publish, hostile, ...options }) {
    call = await connect({ ...options, platform: { WebSocket: recording(HOSTILE[hostile]) } });
    for (const name of EVENTS) {
      call.on(name, (event) => {
        const { reason, code, message, data, trackId, participantId, participant } = event;
        const what = typeof event === 'string' ? event : { reason, code, message, data, trackId, participantId };
        const by = participant?.name;
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
  /** Resolves to the error's code, or to null. */
  async publish({ video, ...rest }) {
    return this.codeOf(() => call.publish({ ...rest, video: video && SMALL }));
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
  state: () => call.state,
  mediaState: () => call.mediaState,
  closeInfo: () => call.closeInfo,
  events: () => events,
  frames: () => frames,
  /** Who is there, with the tracks that are received of each. */
  others: () =>
    Object.fromEntries(
      [...call.participants.values()].map(({ name, tracks }) => [
        name,
        [...tracks.values()].filter((track) => track.mediaStreamTrack).map(({ trackId }) => trackId),
      ]),
    ),
  /** What has come in, by name of the sender. */
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
  /** What has gone out, by kind. */
  async sent() {
    const { publisher } = await call.getStats();
    const sums = { audio: 0, video: 0 };
    for (const entry of publisher?.values() ?? []) {
      if (entry.type === 'outbound-rtp') sums[entry.kind] += entry.packetsSent;
    }
    return sums;
  },
  /** Over which way media goes: `udp`, `tcp` when relayed, else `none`. */
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
