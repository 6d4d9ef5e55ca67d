import { eventually } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import type { Call } from '../call.js';
import { devices, join, mutesOf, newTrack } from './call-with-devices.testkit.js';
import { createLocalTracks } from './create-tracks.js';

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
    const {
      published: [camera],
    } = await call.publish({ video: true });
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
    const {
      published: [microphone],
    } = await call.publish({ audio: { echoCancellation: true } });
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
    const {
      published: [camera],
    } = await call.publish({ video: true });
    state.error = 'NotFoundError';
    await expect(call.switchDevice('videoinput', 'gone')).rejects.toMatchObject({ code: 'device_not_found' });
    expect(camera!.mediaStreamTrack).toBe(opened[0]!.track);
    expect(opened[0]!.track.readyState).toBe('live');
  });

  test('on a machine that opens one camera at a time, the previous one is closed first', async () => {
    const { call, opened, state } = await join();
    const {
      published: [camera],
    } = await call.publish({ video: true });
    state.before = () => {
      if (opened[0]!.track.readyState === 'live') throw Object.assign(new Error(), { name: 'NotReadableError' });
    };
    await call.switchDevice('videoinput', 'cam-b');
    expect(camera!.mediaStreamTrack).toBe(opened[1]!.track);
  });
});

describe('a device that is gone', () => {
  const fallbacksOf = (call: Call) => {
    const fallbacks: unknown[] = [];
    call.on('deviceFallback', ({ source, deviceId }) => fallbacks.push([source, deviceId]));
    return fallbacks;
  };

  test('is replaced by the default one when its camera is unmuted, which an event reports once', async () => {
    const { call, state } = await join();
    const fallbacks = fallbacksOf(call);
    await call.publish({ video: { frameRate: 10 } });
    await call.switchDevice('videoinput', 'cam-b');
    await call.mute('camera');
    state.list = state.list.filter(({ deviceId }) => deviceId !== 'cam-b');
    await call.unmute('camera');
    expect(call.tracks.get('camera')).toMatchObject({ deviceId: 'cam-a', muted: false });
    expect(call.tracks.get('camera')!.mediaStreamTrack.readyState).toBe('live');
    await call.mute('camera');
    await call.unmute('camera');
    expect(fallbacks).toEqual([['camera', 'cam-a']]);
    await call.mute('camera');
    state.list = [];
    await expect(call.unmute('camera')).rejects.toMatchObject({ code: 'device_not_found' });
  });

  test('is replaced when the chosen one is published later', async () => {
    const { call, state } = await join();
    const fallbacks = fallbacksOf(call);
    await call.switchDevice('audioinput', 'mic-b');
    state.list = state.list.filter(({ deviceId }) => deviceId !== 'mic-b');
    await call.publish({ audio: true });
    expect(fallbacks).toEqual([['microphone', 'mic-a']]);
  });

  test.each(['published', 'muted', 'not published'])(
    'is refused at once by switchDevice while the track is %s',
    async (state) => {
      const { call, opened } = await join();
      if (state !== 'not published') await call.publish({ video: true });
      if (state === 'muted') await call.mute('camera');
      const before = opened.length;
      await expect(call.switchDevice('videoinput', 'gone')).rejects.toMatchObject({ code: 'device_not_found' });
      await expect(call.switchDevice('audiooutput', 'gone')).rejects.toMatchObject({ code: 'device_not_found' });
      expect(opened).toHaveLength(before);
      if (state === 'not published') await call.publish({ video: true });
      else await call.unmute('camera');
      expect(call.tracks.get('camera')!.deviceId).toBe('cam-a');
    },
  );

  test('may be chosen before the user has allowed devices, whose ids browsers hide until then', async () => {
    const { call, state } = await join();
    state.list = [{ kind: 'videoinput', deviceId: '', label: '' }];
    await call.switchDevice('videoinput', 'cam-b');
  });
});

describe('if one of two devices cannot be opened', () => {
  test.each([
    ['NotFoundError', 'device_not_found'],
    ['NotReadableError', 'device_in_use'],
    ['NotAllowedError', 'device_permission_denied'],
  ])('the other one is published (%s)', async (error, code) => {
    const { call, opened, state } = await join();
    state.error = { video: error };
    const { published, failed } = await call.publish({ audio: true, video: true });
    expect(published.map(({ snapshot }) => snapshot)).toEqual([call.tracks.get('microphone')]);
    expect(failed).toEqual([{ source: 'camera', code, message: expect.any(String) }]);
    expect(opened.map(({ track }) => [track.kind, track.readyState])).toEqual([['audio', 'live']]);
    state.error = { audio: error };
    await call.unpublish();
    const other = await call.publish({ audio: true, video: true });
    expect(other).toMatchObject({ published: [{ source: 'camera' }], failed: [{ source: 'microphone', code }] });
  });

  test('a preview has the other one', async () => {
    const { mediaDevices, state } = devices();
    state.error = { video: 'NotFoundError' };
    const { tracks, failed } = await createLocalTracks({ audio: true, video: true, platform: { mediaDevices } });
    expect(tracks).toMatchObject([{ source: 'microphone' }]);
    expect(failed).toMatchObject([{ source: 'camera', code: 'device_not_found' }]);
  });

  test('and the other one cannot either, the promise rejects', async () => {
    const { call, state } = await join();
    state.error = { audio: 'NotFoundError', video: 'NotReadableError' };
    await expect(call.publish({ audio: true, video: true })).rejects.toMatchObject({ code: 'device_not_found' });
    expect(call.tracks.size).toBe(0);
  });
});

describe('muting', () => {
  test('closes the camera and opens it again; the microphone stays open', async () => {
    const { call, opened, sent } = await join();
    const {
      published: [microphone, camera],
    } = await call.publish({ audio: true, video: true });
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
    const {
      published: [microphone],
    } = await call.publish({ audio: true });
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
    const {
      published: [microphone],
    } = await call.publish({ audio: true });
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
    const { tracks: preview } = await createLocalTracks({ audio: true, video: true, platform });
    expect(preview.map(({ trackId }) => trackId)).toEqual(['microphone', 'camera']);
    const { published } = await call.publish(preview);
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
    await eventually(() => opened[0]!.track.readyState === 'ended');
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
