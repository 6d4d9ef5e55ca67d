import { eventually } from '@callplane/testing';
import { describe, expect, test } from '@jest/globals';
import type { Call } from '../call.js';
import { join, mutesOf, newTrack } from './call-with-devices.testkit.js';
import { createLocalTracks } from './create-tracks.js';

type Kit = Awaited<ReturnType<typeof join>>;

/** Devices that open when `open()` is called, as they do when the user answers the browser's question. */
function held(state: Kit['state']) {
  let open = (): void => undefined;
  const answered = new Promise<void>((resolve) => (open = resolve));
  let asked = 0;
  state.before = () => {
    asked += 1;
    return answered;
  };
  return { open, asked: () => asked, isAsked: () => eventually(() => asked > 0) };
}

const resultOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    (error: unknown) => (error as { code: string }).code,
  );
const endings: Record<string, (kit: Kit) => unknown> = {
  'unpublish()': ({ call }) => call.unpublish(),
  'unpublish(id)': ({ call }) => call.unpublish('camera'),
  'leave()': ({ call }) => call.leave(),
  'a removal': async ({ gateway }) => (await gateway.connection(0)).end('removed'),
  'a permission that the server takes back': async ({ gateway }) =>
    (await gateway.connection(0)).send({ type: 'permissions', permissions: ['room:join'] }),
};

describe('while a device opens', () => {
  test.each(Object.keys(endings))('%s cancels its publication and closes the device', async (ending) => {
    const kit = await join();
    const device = held(kit.state);
    const publishing = resultOf(kit.call.publish({ video: true }));
    await device.isAsked();
    await endings[ending]!(kit);
    expect(await publishing).toBe('aborted');
    device.open();
    await eventually(() => kit.opened[0]!.track.readyState === 'ended');
    expect(kit.call.tracks.size).toBe(0);
    expect(kit.sent).toEqual([]);
  });

  test('unpublish() in the same turn as publish() cancels it, also before the code to publish is loaded', async () => {
    const { call, opened, sent } = await join();
    const publishing = resultOf(call.publish({ video: true }));
    await call.unpublish();
    expect(await publishing).toBe('aborted');
    await eventually(() => opened.every(({ track }) => track.readyState === 'ended'));
    expect(sent).toEqual([]);
  });

  test('stopScreenShare() cancels the share, and the next one is independent of the first', async () => {
    const { call, opened, state } = await join();
    const picker = held(state);
    const sharing = resultOf(call.shareScreen());
    await picker.isAsked();
    await call.stopScreenShare();
    expect(await sharing).toBe('aborted');
    delete state.before;
    await call.shareScreen({ audio: false });
    picker.open();
    await eventually(() => opened.length === 3);
    await eventually(() => opened.slice(1).every(({ track }) => track.readyState === 'ended'));
    expect([...call.tracks.keys()]).toEqual(['screen']);
    expect(opened[0]!.track.readyState).toBe('live');
  });

  test('unpublish of one of two devices publishes the other one', async () => {
    const { call, opened, state } = await join();
    const device = held(state);
    const publishing = call.publish({ audio: true, video: true });
    await device.isAsked();
    await call.unpublish('camera');
    device.open();
    const { published, failed } = await publishing;
    expect(published.map(({ trackId }) => trackId)).toEqual(['microphone']);
    expect(failed).toEqual([{ source: 'camera', code: 'aborted', message: expect.any(String) }]);
    expect(opened.map(({ track }) => track.readyState)).toEqual(['live', 'ended']);
    expect([...call.tracks.keys()]).toEqual(['microphone']);
  });

  test('unpublish of the one device that works cancels the publication', async () => {
    const { call, opened, sent, state } = await join();
    const device = held(state);
    state.error = { video: 'NotFoundError' };
    const publishing = resultOf(call.publish({ audio: true, video: true }));
    await device.isAsked();
    await call.unpublish('microphone');
    device.open();
    expect(await publishing).toBe('aborted');
    expect(opened.map(({ track }) => track.readyState)).toEqual(['ended']);
    expect(sent).toEqual([]);
  });

  test('a mute lets the track start muted, and closes the camera', async () => {
    const { call, opened, sent, state } = await join();
    const device = held(state);
    const publishing = call.publish({ audio: true, video: true });
    await device.isAsked();
    const muting = Promise.all([call.mute('microphone'), call.mute('camera')]);
    device.open();
    const { published } = await publishing;
    expect(published.map(({ muted }) => muted)).toEqual([true, true]);
    expect(published[0]!.mediaStreamTrack.enabled).toBe(false);
    expect(sent[0]).toMatchObject({ type: 'publish', tracks: [{ muted: true }, { muted: true }] });
    await muting;
    expect(opened.map(({ track }) => track.readyState)).toEqual(['live', 'ended']);
    await call.unmute('camera');
    expect(opened[2]!.track).toMatchObject({ readyState: 'live', enabled: true });
  });

  test('of a mute and an unmute, the last one counts', async () => {
    const { call, state, sent } = await join();
    const device = held(state);
    const publishing = call.publish({ audio: true });
    await device.isAsked();
    const changing = Promise.all([call.mute('microphone'), call.unmute('microphone')]);
    device.open();
    await Promise.all([publishing, changing]);
    expect(call.tracks.get('microphone')).toMatchObject({ muted: false, mediaStreamTrack: { enabled: true } });
    expect(mutesOf(sent).at(-1)).toBe('microphone false');
  });

  test('a mute rejects like the publication', async () => {
    const { call, state } = await join();
    const device = held(state);
    const publishing = resultOf(call.publish({ audio: true }));
    await device.isAsked();
    const muting = resultOf(call.mute('microphone'));
    await call.unpublish();
    expect(await Promise.all([publishing, muting])).toEqual(['aborted', 'aborted']);
    device.open();
  });

  test('another device that is chosen meanwhile is used', async () => {
    const { call, opened, state } = await join();
    const device = held(state);
    const publishing = call.publish({ video: true });
    await device.isAsked();
    const switching = call.switchDevice('videoinput', 'cam-b');
    device.open();
    await Promise.all([publishing, switching]);
    expect(call.tracks.get('camera')!.deviceId).toBe('cam-b');
    expect(opened.map(({ track }) => track.readyState)).toEqual(['ended', 'live']);
  });
});

describe('while the gateway answers', () => {
  test('unpublish() cancels the publication, closes the device, and the gateway ends without the track', async () => {
    const { call, opened, sent, state } = await join();
    await call.publish({ audio: true });
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    state.beforeAnswer = () => answered;
    const events: string[] = [];
    call.on('localTrackPublished', ({ trackId }) => events.push(`+${trackId}`));
    call.on('localTrackUnpublished', ({ trackId }) => events.push(`-${trackId}`));
    const publishing = resultOf(call.publish({ video: true }));
    await eventually(() => sent.length === 2);
    const unpublishing = call.unpublish('camera');
    answer();
    await unpublishing;
    expect(await publishing).toBe('aborted');
    expect(opened[1]!.track.readyState).toBe('ended');
    expect([...call.tracks.keys()]).toEqual(['microphone']);
    expect(sent.at(-1)).toMatchObject({ type: 'publish', tracks: [{ trackId: 'microphone' }] });
    expect(events).toEqual([]);
  });

  test('unpublish() closes a preview, too', async () => {
    const { call, opened, platform } = await join();
    const { tracks } = await createLocalTracks({ video: true, platform });
    const publishing = resultOf(call.publish(tracks));
    await call.unpublish();
    expect(await publishing).toBe('aborted');
    expect(opened[0]!.track.readyState).toBe('ended');
  });

  test('unpublish() in a listener of localTrackPublished unpublishes the track', async () => {
    const { call } = await join();
    call.on('localTrackPublished', () => void call.unpublish('camera'));
    await call.publish({ video: true });
    await eventually(() => call.tracks.size === 0);
  });
});

describe('after the end of the call', () => {
  /** Calls that wait for the gateway or a device when the call ends. */
  const pending: Record<string, (call: Call) => Promise<unknown>> = {
    'a mute': (call) => call.mute('microphone'),
    'an unmute': (call) => call.unmute('microphone'),
    'an unmute that opens the camera': (call) => call.unmute('camera'),
    'an unpublish': (call) => call.unpublish('microphone'),
    'a switch': (call) => call.switchDevice('audioinput', 'mic-b'),
    'a publish': (call) => call.publish(newTrack('video'), { source: 'screen' }),
    'a message': (call) => call.send('hello'),
    'a page of the roster': (call) => call.listParticipants(),
  };
  const silent = {
    mute: () => undefined,
    message: () => undefined,
    roster: () => undefined,
    unpublish: () => undefined,
  };

  test.each(Object.keys(pending))('%s that waits rejects, no event follows, and no device stays open', async (name) => {
    let isSilent = false;
    const script = Object.fromEntries(
      Object.entries(silent).map(([type, answer]) => [type, () => (isSilent ? answer() : { type: 'ok' as const })]),
    );
    const { call, opened, state } = await join({ script });
    await call.publish({ audio: true, video: true });
    await call.mute('camera');
    isSilent = true;
    const device = held(state);
    const events: string[] = [];
    let isClosed = false;
    for (const event of [
      'localTrackUpdated',
      'localTrackPublished',
      'localTrackUnpublished',
      'problem',
      'state',
    ] as const)
      call.on(event, () => {
        if (isClosed) events.push(event);
      });
    call.on('closed', () => {
      isClosed = true;
    });
    const waiting = resultOf(pending[name]!(call));
    await call.leave();
    expect(await waiting).toBe('closed');
    device.open();
    await eventually(
      () => opened.length >= 2 + device.asked() && opened.every(({ track }) => track.readyState === 'ended'),
    );
    expect(events).toEqual([]);
  });

  test('a removal is the code of the calls that it ends', async () => {
    const { call, gateway } = await join({ script: { message: () => undefined } });
    const sending = resultOf(call.send('hello'));
    const connection = await gateway.connection(0);
    await eventually(() => connection.received.length === 2);
    connection.end('removed');
    expect(await sending).toBe('removed');
  });
});
