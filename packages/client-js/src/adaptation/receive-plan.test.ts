import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { Adaptation } from '../subscriptions.js';
import { GONE_MAX, ReceivePlan, type Display } from './receive-plan.js';

const track = (participantId: string) => ({ participantId, trackId: 'camera' });
const display = (maxSpatial: number, isHidden = false): Display => ({ maxSpatial, isHidden, pixels: 100 });

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function setUp() {
  const requests: Adaptation[][] = [];
  let failures = 0;
  const plan = new ReceivePlan((tracks) => {
    requests.push(tracks);
    failures -= 1;
    return failures >= 0 ? Promise.reject(new Error('lost')) : Promise.resolve();
  });
  const fail = (times: number) => {
    failures = times;
  };
  const take = async () => {
    await jest.advanceTimersByTimeAsync(0);
    return requests.splice(0);
  };
  return { plan, fail, take };
}

describe('the plan of what is received', () => {
  test('requests the changes of a tick together, and nothing twice', async () => {
    const { plan, take } = setUp();
    plan.display(track('ada'), display(1));
    plan.display(track('eve'), display(0, true));
    plan.display(track('ada'), display(2));
    expect(await take()).toEqual([
      [
        { ...track('ada'), layer: { spatial: 2 }, paused: false },
        { ...track('eve'), layer: { spatial: 0 }, paused: true },
      ],
    ]);
    plan.display(track('ada'), { ...display(2), pixels: 200 });
    plan.limit(track('bob'), undefined);
    expect(await take()).toEqual([]);
    expect(plan.displayOf(track('ada'))?.pixels).toBe(200);
  });

  test('takes the lower layer of display and network, and pauses what is hidden or does not fit', async () => {
    const { plan, take } = setUp();
    plan.display(track('ada'), display(1));
    const wanted = async () => (await take())[0]?.[0];
    expect(await wanted()).toMatchObject({ layer: { spatial: 1 }, paused: false });
    plan.limit(track('ada'), { layer: { spatial: 0, temporal: 1 }, isPaused: false });
    expect(await wanted()).toMatchObject({ layer: { spatial: 0, temporal: 1 }, paused: false });
    plan.limit(track('ada'), { layer: { spatial: 0 }, isPaused: true });
    expect(await wanted()).toMatchObject({ paused: true });
    plan.display(track('ada'), undefined);
    expect(await wanted()).toBeUndefined();
    plan.limit(track('ada'), undefined);
    expect(await wanted()).toEqual({ ...track('ada'), paused: false });
  });

  test('repeats a request that failed, with what is wanted by then, and not after the end', async () => {
    const { plan, fail, take } = setUp();
    fail(2);
    plan.display(track('ada'), display(0));
    plan.display(track('eve'), display(0));
    expect(await take()).toHaveLength(1);
    plan.forget(track('eve'));
    plan.limit(track('ada'), { layer: undefined, isPaused: true });
    expect(await take()).toEqual([[{ ...track('ada'), layer: { spatial: 0 }, paused: true }]]);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await take()).toEqual([[{ ...track('ada'), layer: { spatial: 0 }, paused: true }]]);
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await take()).toEqual([]);
    fail(1);
    plan.display(track('ada'), display(1));
    await take();
    plan.close();
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await take()).toEqual([]);
  });

  test('receives a track in full that was paused as it left, and is published again', async () => {
    const { plan, take } = setUp();
    for (const id of ['ada', 'eve']) plan.limit(track(id), { layer: undefined, isPaused: true });
    plan.display(track('bob'), display(0));
    await take();
    for (const id of ['ada', 'eve', 'bob', 'new']) plan.forget(track(id));
    plan.published(track('ada'));
    plan.published(track('new'));
    plan.display(track('bob'), display(0));
    expect(await take()).toEqual([
      [
        { ...track('ada'), paused: false },
        { ...track('bob'), layer: { spatial: 0 }, paused: false },
      ],
    ]);
    plan.published(track('ada'));
    expect(await take()).toEqual([]);
    // The plan remembers the latest tracks, up to its limit.
    for (let at = 0; at < GONE_MAX; at += 1) plan.limit(track(`p${at}`), { layer: undefined, isPaused: true });
    await take();
    for (let at = 0; at < GONE_MAX; at += 1) plan.forget(track(`p${at}`));
    plan.published(track('eve'));
    plan.published(track('p0'));
    expect(await take()).toEqual([[{ ...track('p0'), paused: false }]]);
  });
});
