import { connect, type Call } from '../call.js';
import type { Platform } from '../platform.js';
import type { ClientMessage } from '../protocol.generated.js';
import { nodePlatform, startScriptedGateway, testToken, welcome } from '../scripted-gateway.testkit.js';
import { createLocalTracks } from './create-tracks.js';
import { eventually } from '@callplane/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type wrtc from '@roamhq/wrtc';

// Real tracks and peer connections; only the devices are stand-ins.
let library: typeof wrtc;
const closers: (() => unknown)[] = [];
beforeAll(async () => {
  ({ default: library } = (await import('@roamhq/wrtc')) as unknown as { default: typeof wrtc });
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

function newTrack(kind: 'audio' | 'video'): MediaStreamTrack {
  const { RTCAudioSource, RTCVideoSource } = library.nonstandard;
  const track = (kind === 'audio' ? new RTCAudioSource() : new RTCVideoSource()).createTrack();
  closers.push(() => track.stop());
  return track;
}

/** Devices that open at once, or fail with the error that the test sets. */
function devices() {
  const opened: { constraints: MediaStreamConstraints; track: MediaStreamTrack }[] = [];
  const state: { error?: string; before?: () => unknown } = {};
  const open = async (constraints: MediaStreamConstraints, kinds: ('audio' | 'video')[]) => {
    await state.before?.();
    if (state.error !== undefined) throw Object.assign(new Error('refused'), { name: state.error });
    const tracks = kinds.map(newTrack);
    for (const track of tracks) opened.push({ constraints, track });
    return { getTracks: () => tracks } as MediaStream;
  };
  const kindsOf = ({ audio, video }: MediaStreamConstraints) => [
    ...(audio ? ['audio' as const] : []),
    ...(video ? ['video' as const] : []),
  ];
  const mediaDevices = {
    getUserMedia: (constraints: MediaStreamConstraints) => open(constraints, kindsOf(constraints)),
    getDisplayMedia: (options: MediaStreamConstraints) => open(options, kindsOf(options)),
    enumerateDevices: () =>
      Promise.resolve([
        { kind: 'audioinput', deviceId: 'mic-a', label: 'Headset' },
        { kind: 'videoinput', deviceId: 'cam-a', label: '' },
        { kind: 'audiooutput', deviceId: '', label: '' },
      ]),
  } as unknown as NonNullable<Platform['mediaDevices']>;
  return { mediaDevices, opened, state };
}

/** A call with stand-in devices; the gateway answers offers with a real peer connection. */
async function join(permissions?: string[]) {
  const { mediaDevices, opened, state } = devices();
  const sent: ClientMessage[] = [];
  const gateway = await startScriptedGateway({
    join: () => welcome(permissions === undefined ? {} : { permissions }),
    publish: (message, connection) => {
      sent.push(message);
      const peer = new library.RTCPeerConnection();
      closers.push(() => peer.close());
      const answer = async () => {
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
  });
  const RTCPeerConnection = library.RTCPeerConnection as unknown as Platform['RTCPeerConnection'];
  const platform = { ...nodePlatform, RTCPeerConnection, mediaDevices };
  const call: Call = await connect({ url: gateway.url, token: testToken, platform });
  closers.push(() => call.leave());
  return { call, opened, state, sent, gateway, platform };
}
const mutesOf = (sent: ClientMessage[]) =>
  sent.flatMap((message) => (message.type === 'mute' ? [`${message.trackId} ${message.muted}`] : []));

describe('publishing again', () => {
  test('a second microphone or camera is refused before the browser opens a device', async () => {
    const { call, opened } = await join();
    const both = await Promise.allSettled([call.publish({ audio: true }), call.publish({ audio: true })]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(both[1]).toMatchObject({ reason: { code: 'already_published' } });
    await expect(call.publish({ audio: true, video: true })).rejects.toMatchObject({ code: 'already_published' });
    expect(opened).toHaveLength(1);
    expect([...call.tracks.keys()]).toEqual(['microphone']);
  });

  test('an id in use is refused, and its track stays as it is', async () => {
    const { call } = await join();
    const first = newTrack('video');
    await call.publish(first, { source: 'screen', trackId: 'slides' });
    const again = call.publish(newTrack('video'), { source: 'screen', trackId: 'slides' });
    await expect(again).rejects.toMatchObject({ code: 'already_published' });
    expect(call.tracks.get('slides')!.mediaStreamTrack).toBe(first);
  });

  test('an explicit id allows a second camera, up to four tracks', async () => {
    const { call, opened } = await join();
    await call.publish({ audio: true, video: true });
    await call.publish(newTrack('video'), { source: 'camera', trackId: 'document-camera' });
    await call.publish(newTrack('video'), { source: 'screen' });
    await expect(call.shareScreen()).rejects.toMatchObject({
      code: 'too_many_tracks',
      message: expect.stringContaining('Unpublish one first'),
    });
    expect(opened).toHaveLength(2);
  });
});

describe('other media on a published track', () => {
  test('replaceTrack keeps the id and closes the device that the SDK had opened', async () => {
    const { call, opened, sent } = await join();
    const [camera] = await call.publish({ video: true });
    const canvas = newTrack('video');
    await call.replaceTrack('camera', canvas);
    expect(camera!.mediaStreamTrack).toBe(canvas);
    expect(opened[0]!.track.readyState).toBe('ended');
    await call.unpublish('camera');
    expect(canvas.readyState).toBe('live');
    expect(sent.filter(({ type }) => type === 'publish')).toHaveLength(1);
    await expect(call.replaceTrack('camera', canvas)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('switchDevice opens the other device with the same constraints and closes the previous one', async () => {
    const { call, opened } = await join();
    const [microphone] = await call.publish({ audio: { echoCancellation: true } });
    await call.switchDevice('audioinput', 'mic-b');
    expect(opened.map(({ constraints }) => constraints.audio)).toEqual([
      { echoCancellation: true },
      { echoCancellation: true, deviceId: { exact: 'mic-b' } },
    ]);
    expect(microphone!.mediaStreamTrack).toBe(opened[1]!.track);
    expect(opened[0]!.track.readyState).toBe('ended');
  });

  test('a device that cannot be opened leaves the previous one in place', async () => {
    const { call, opened, state } = await join();
    const [camera] = await call.publish({ video: true });
    state.error = 'NotFoundError';
    await expect(call.switchDevice('videoinput', 'gone')).rejects.toMatchObject({ code: 'device_not_found' });
    expect(camera!.mediaStreamTrack).toBe(opened[0]!.track);
    expect(opened[0]!.track.readyState).toBe('live');
  });

  test('on a machine that opens one camera at a time, the previous one is closed first', async () => {
    const { call, opened, state } = await join();
    const [camera] = await call.publish({ video: true });
    state.before = () => {
      if (opened[0]!.track.readyState === 'live') throw Object.assign(new Error(), { name: 'NotReadableError' });
    };
    await call.switchDevice('videoinput', 'cam-b');
    expect(camera!.mediaStreamTrack).toBe(opened[1]!.track);
  });
});

describe('muting', () => {
  test('closes the camera and opens it again; the microphone stays open', async () => {
    const { call, opened, sent } = await join();
    const [microphone, camera] = await call.publish({ audio: true, video: true });
    await call.mute('camera');
    await call.mute('microphone');
    expect(opened.map(({ track }) => track.readyState)).toEqual(['live', 'ended']);
    expect(microphone!.mediaStreamTrack.enabled).toBe(false);
    await call.unmute('camera');
    expect(camera!.mediaStreamTrack).toBe(opened[2]!.track);
    expect(camera).toMatchObject({ muted: false, isReleased: false });
    expect(mutesOf(sent)).toEqual(['camera true', 'microphone true', 'camera false']);
  });

  test('of quick changes the last one counts, and a mute takes effect at once', async () => {
    const { call, sent } = await join();
    const [microphone] = await call.publish({ audio: true });
    await call.mute('microphone');
    const seen: boolean[] = [];
    call.on('localTrackUpdated', ({ muted }) => seen.push(muted));
    await Promise.all([call.unmute('microphone'), call.mute('microphone')]);
    expect(microphone!.mediaStreamTrack.enabled).toBe(false);
    expect(seen).toEqual([]);
    expect(mutesOf(sent).at(-1)).toBe('microphone true');
  });

  test('a mute by the server mutes here, and only its own end unmutes', async () => {
    const { call, gateway } = await join();
    const [microphone] = await call.publish({ audio: true });
    const connection = await gateway.connection(0);
    const state = (muted: boolean) =>
      connection.send({
        type: 'changes',
        changes: [
          {
            kind: 'tracks',
            participantId: 'me',
            sessionId: 'sess_me',
            tracks: [{ trackId: 'microphone', kind: 'audio', source: 'microphone', muted }],
          },
        ],
      });
    const seen: boolean[] = [];
    call.on('localTrackUpdated', ({ muted }) => seen.push(muted));
    state(true);
    await eventually(() => microphone!.muted && !microphone!.mediaStreamTrack.enabled);
    state(false);
    await eventually(() => microphone!.mediaStreamTrack.enabled);
    await call.mute('microphone');
    state(false);
    await call.send({});
    expect(microphone!.mediaStreamTrack.enabled).toBe(false);
    expect(seen).toEqual([true, false, true]);
  });
});

describe('previews and devices', () => {
  test('tracks of a preview are published as they are, and stay open until they are unpublished', async () => {
    const { call, opened, platform } = await join();
    const preview = await createLocalTracks({ audio: true, video: true, platform });
    expect(preview.map(({ trackId }) => trackId)).toEqual(['microphone', 'camera']);
    const published = await call.publish(preview);
    expect(published).toEqual(preview);
    expect(opened).toHaveLength(2);
    await call.unpublish();
    expect(opened.map(({ track }) => track.readyState)).toEqual(['ended', 'ended']);
  });

  test('an aborted signal closes devices that are opened too late', async () => {
    const { call, opened, state } = await join();
    const abort = new AbortController();
    state.before = () => abort.abort();
    const publishing = call.publish({ video: true, signal: abort.signal });
    await expect(publishing).rejects.toMatchObject({ code: 'aborted' });
    expect(opened[0]!.track.readyState).toBe('ended');
    expect(call.tracks.size).toBe(0);
  });

  test.each([
    ['NotAllowedError', 'device_permission_denied', 'Allow the camera'],
    ['NotFoundError', 'device_not_found', 'No camera'],
    ['NotReadableError', 'device_in_use', 'Another program'],
    ['OverconstrainedError', 'device_not_found', 'not available'],
    ['SecurityError', 'device_unavailable', 'camera'],
  ])('the browser’s %s becomes %s', async (name, code, text) => {
    const { mediaDevices, state } = devices();
    state.error = name;
    const opening = createLocalTracks({ video: true, platform: { mediaDevices } });
    await expect(opening).rejects.toMatchObject({
      code,
      message: expect.stringContaining(text),
      cause: expect.objectContaining({ name }),
    });
  });
});

describe('sharing a screen', () => {
  test('includes unprocessed sound, and ends with it', async () => {
    const { call, opened } = await join();
    const shared = await call.shareScreen();
    expect(shared.map(({ trackId }) => trackId)).toEqual(['screen', 'screen_audio'].sort((a, b) => (a < b ? 1 : -1)));
    expect(opened[0]!.constraints).toMatchObject({ systemAudio: 'include', audio: { echoCancellation: false } });
    await call.stopScreenShare();
    expect(call.tracks.size).toBe(0);
    expect(opened.map(({ track }) => track.readyState)).toEqual(['ended', 'ended']);
  });
});

test('a permission that the server takes back ends its tracks', async () => {
  const { call, gateway, opened } = await join();
  await call.publish({ audio: true, video: true });
  const ended: string[] = [];
  call.on('localTrackUnpublished', ({ trackId }) => ended.push(trackId));
  const connection = await gateway.connection(0);
  connection.send({ type: 'permissions', permissions: ['room:join', 'audio:publish'] } as never);
  await eventually(() => ended.length > 0);
  expect(ended).toEqual(['camera']);
  expect(opened.map(({ track }) => track.readyState)).toEqual(['live', 'ended']);
  expect(call.permissions).toEqual(['room:join', 'audio:publish']);
  await expect(call.publish({ video: true })).rejects.toMatchObject({ code: 'permission_denied' });
});
