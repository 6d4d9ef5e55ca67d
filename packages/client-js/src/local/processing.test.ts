import { describe, expect, test } from '@jest/globals';
import type { CallplaneError } from '../errors.js';
import { join, newTrack } from './call-with-devices.testkit.js';
import { createLocalTracks } from './create-tracks.js';
import type { TrackProcessor } from './local-track.js';
import { Pace } from './processing.js';

/** Counts its calls, and makes a new track at each. */
function processor(fails?: () => unknown) {
  const state = { got: [] as MediaStreamTrack[], made: [] as MediaStreamTrack[], stops: 0 };
  const one: TrackProcessor = {
    process: async (track) => {
      state.got.push(track);
      await fails?.();
      const made = newTrack(track.kind as 'audio' | 'video');
      state.made.push(made);
      return made;
    },
    stop: () => {
      state.stops += 1;
    },
  };
  return { one, state };
}

async function publishing() {
  const joined = await join();
  const problems: CallplaneError[] = [];
  joined.call.on('problem', (error) => problems.push(error));
  await joined.call.publish({ audio: true, video: true });
  const track = (id: string) => joined.call.tracks.get(id)!;
  return { ...joined, problems, track };
}

describe('a processor of a published track', () => {
  test('stays across mute, unmute and another device, and ends when it is taken away', async () => {
    const { call, opened, problems, track } = await publishing();
    const { one, state } = processor();
    await track('camera').setProcessor(one);
    expect(state.got).toEqual([opened[1]!.track]);
    expect(track('camera').mediaStreamTrack).toBe(state.made[0]);
    expect(track('camera').deviceId).toBe('cam-a');

    await call.mute('camera');
    expect(opened[1]!.track.readyState).toBe('ended');
    await call.unmute('camera');
    expect(state.got[1]).toBe(opened[2]!.track);
    expect(track('camera').mediaStreamTrack).toBe(state.made[1]);

    await call.switchDevice('videoinput', 'cam-b');
    expect(track('camera')).toMatchObject({ deviceId: 'cam-b', mediaStreamTrack: state.made[2] });
    expect(opened[2]!.track.readyState).toBe('ended');
    expect(state.stops).toBe(0);

    await track('camera').setProcessor(undefined);
    expect(state.stops).toBe(1);
    expect(track('camera').mediaStreamTrack).toBe(opened[3]!.track);
    expect(opened[3]!.track.readyState).toBe('live');
    expect(problems).toEqual([]);
  });

  test('keeps a muted microphone silent, also if it is set meanwhile, and is replaced by another one', async () => {
    const { call, opened, track } = await publishing();
    await call.mute('microphone');
    const [first, second] = [processor(), processor()];
    await track('microphone').setProcessor(first.one);
    expect(track('microphone').mediaStreamTrack.enabled).toBe(false);
    await call.unmute('microphone');
    expect([opened[0]!.track.enabled, first.state.made[0]!.enabled]).toEqual([true, true]);
    await track('microphone').setProcessor(second.one);
    expect([first.state.stops, second.state.stops]).toEqual([1, 0]);
    expect(track('microphone').mediaStreamTrack).toBe(second.state.made[0]);
    await call.unpublish();
    expect(second.state.stops).toBe(1);
    expect(opened[0]!.track.readyState).toBe('ended');
  });

  test('that fails, at once or later, leaves the unprocessed media', async () => {
    const { call, opened, problems, track } = await publishing();
    const broken = processor(() => Promise.reject(new Error('no WebGL')));
    await expect(track('camera').setProcessor(broken.one)).rejects.toMatchObject({ code: 'processor_failed' });
    expect(track('camera').mediaStreamTrack).toBe(opened[1]!.track);
    expect(broken.state.stops).toBe(1);

    let count = 0;
    const later = processor(() => (count++ > 0 ? Promise.reject(new Error('context lost')) : undefined));
    await track('camera').setProcessor(later.one);
    await call.switchDevice('videoinput', 'cam-b');
    expect(track('camera').mediaStreamTrack).toBe(opened[2]!.track);
    expect(opened[2]!.track.readyState).toBe('live');
    expect(problems.map(({ code, message }) => [code, /no WebGL|context lost/.exec(message)?.[0]])).toEqual([
      ['processor_failed', 'no WebGL'],
      ['processor_failed', 'context lost'],
    ]);
    expect(later.state.stops).toBe(1);
  });
});

test('a preview is processed, and so from its first published picture on', async () => {
  const { call, platform, opened } = await join();
  const { tracks } = await createLocalTracks({ video: true, platform });
  const { one, state } = processor();
  await tracks[0]!.setProcessor(one);
  expect(tracks[0]!.mediaStreamTrack).toBe(state.made[0]);
  await call.publish(tracks);
  expect(call.tracks.get('camera')!.mediaStreamTrack).toBe(state.made[0]);
  await call.leave();
  expect([opened[0]!.track.readyState, state.stops]).toEqual(['ended', 1]);
});

test('only seconds in a row in which the page is shown and the track is not muted make a processor too slow', () => {
  const after = (seconds: [fps: number | undefined, isMeaningful?: boolean][], camera?: number) => {
    const pace = new Pace();
    return seconds.map(([fps, isMeaningful = true]) => pace.isTooSlow(fps, camera, isMeaningful)).indexOf(true);
  };
  const slow = Array<[number]>(8).fill([5]);
  expect(after(slow)).toBe(5);
  expect(after([[5], [5], [5], [5], [5], [12], [5], [5], [12]])).toBe(-1);
  expect(after(slow.map(() => [5, false]))).toBe(-1);
  expect(after([...slow.slice(0, 5), [5, false], [5], [5]])).toBe(-1);
  expect(after(slow.map(() => [undefined]))).toBe(-1);
  // A camera with 8 pictures a second gives no more.
  expect(after(slow, 8)).toBe(-1);
});
