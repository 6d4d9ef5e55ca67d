import { connect, type Call } from '../call.js';
import type { ConnectOptions } from '../options.js';
import type { Platform } from '../platform.js';
import type { ClientMessage } from '../protocol.generated.js';
import { nodePlatform, startScriptedGateway, testToken, welcome, type Script } from '../scripted-gateway.testkit.js';
import { stopAtEnd } from '@callplane/testing';
import type wrtc from '@roamhq/wrtc';

// Real tracks and peer connections; only the devices are stand-ins.
const { default: library } = (await import('@roamhq/wrtc')) as unknown as { default: typeof wrtc };

export function newTrack(kind: 'audio' | 'video'): MediaStreamTrack {
  const { RTCAudioSource, RTCVideoSource } = library.nonstandard;
  const track = (kind === 'audio' ? new RTCAudioSource() : new RTCVideoSource()).createTrack();
  stopAtEnd(async () => track.stop());
  return track;
}

interface Opened {
  constraints: MediaStreamConstraints;
  track: MediaStreamTrack;
}

/** Devices that open at once, or fail with the error that the test sets. */
export function devices() {
  const opened: Opened[] = [];
  const state: {
    /** Name of the browser's error; for one kind, or for all. */
    error?: string | { audio?: string; video?: string };
    /** Runs before a device opens. */
    before?: () => unknown;
    /** Runs before the gateway answers an offer. */
    beforeAnswer?: () => unknown;
    list: Pick<MediaDeviceInfo, 'kind' | 'deviceId' | 'label'>[];
  } = {
    list: [
      { kind: 'audioinput', deviceId: 'mic-a', label: 'Headset' },
      { kind: 'audioinput', deviceId: 'mic-b', label: 'Laptop' },
      { kind: 'videoinput', deviceId: 'cam-a', label: '' },
      { kind: 'videoinput', deviceId: 'cam-b', label: '' },
    ],
  };
  const deviceFor = (kind: 'audio' | 'video', { deviceId }: MediaTrackConstraints): string => {
    const { exact, ideal } = (deviceId ?? {}) as { exact?: string; ideal?: string | string[] };
    const ids = state.list.filter((one) => one.kind === `${kind}input`).map((one) => one.deviceId);
    const wanted = ids.find((id) => [exact ?? ideal].flat().includes(id));
    if (ids.length === 0) throw refusal('NotFoundError');
    if (exact !== undefined && wanted === undefined) throw refusal('OverconstrainedError');
    return wanted ?? ids[0]!;
  };
  const open = async (constraints: MediaStreamConstraints, isScreen: boolean) => {
    await state.before?.();
    const kinds = (['audio', 'video'] as const).filter((kind) => constraints[kind]);
    for (const kind of kinds) {
      const error = typeof state.error === 'object' ? state.error[kind] : state.error;
      if (error !== undefined) throw refusal(error);
    }
    const chosen = kinds.map(
      (kind) => [kind, isScreen ? undefined : deviceFor(kind, Object(constraints[kind]))] as const,
    );
    const tracks = chosen.map(([kind, deviceId]) => {
      const track = newTrack(kind);
      const settings = { ...track.getSettings(), ...(deviceId === undefined ? {} : { deviceId }) };
      return Object.defineProperty(track, 'getSettings', { value: () => settings });
    });
    for (const track of tracks) opened.push({ constraints, track });
    return { getTracks: () => tracks } as unknown as MediaStream;
  };
  const mediaDevices = {
    getUserMedia: (constraints: MediaStreamConstraints) => open(constraints, false),
    getDisplayMedia: (options: MediaStreamConstraints) => open(options, true),
    enumerateDevices: () => Promise.resolve(state.list),
  } as unknown as NonNullable<Platform['mediaDevices']>;
  return { mediaDevices, opened, state };
}

function refusal(name: string): Error {
  return Object.assign(new Error('refused'), { name });
}

/** A call with stand-in devices; the gateway answers offers with a real peer connection, unless the script says otherwise. */
export async function join(options: { permissions?: string[]; script?: Script } & Partial<ConnectOptions> = {}) {
  const { permissions, script, ...others } = options;
  const { mediaDevices, opened, state } = devices();
  const sent: ClientMessage[] = [];
  const gateway = await startScriptedGateway({
    join: () => welcome(permissions === undefined ? {} : { permissions }),
    publish: (message, connection) => {
      sent.push(message);
      const peer = new library.RTCPeerConnection();
      stopAtEnd(async () => peer.close());
      const answer = async () => {
        await state.beforeAnswer?.();
        // The library crashes if a closed connection gets a description.
        if (peer.signalingState === 'closed') return;
        await peer.setRemoteDescription({ type: 'offer', sdp: message.sdp });
        await peer.setLocalDescription(await peer.createAnswer());
        connection.send({ type: 'published', replyTo: message.id!, sdp: peer.localDescription!.sdp });
      };
      // A test may end, and close the peer, before the answer is ready.
      answer().catch(() => undefined);
      return undefined;
    },
    mute: (message) => {
      sent.push(message);
      return { type: 'ok' };
    },
    ...script,
  });
  const RTCPeerConnection = library.RTCPeerConnection as unknown as Platform['RTCPeerConnection'];
  const platform = { ...nodePlatform, RTCPeerConnection, mediaDevices };
  const call: Call = await connect({ url: gateway.url, token: testToken, platform, ...others });
  stopAtEnd(() => call.leave());
  return { call, opened, state, sent, gateway, platform };
}

export function mutesOf(sent: ClientMessage[]): string[] {
  return sent.flatMap((message) => (message.type === 'mute' ? [`${message.trackId} ${message.muted}`] : []));
}
