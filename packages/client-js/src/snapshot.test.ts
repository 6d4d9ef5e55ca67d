import { eventually } from '@callplane/testing';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { createElement, useSyncExternalStore } from 'react';
import { renderToString } from 'react-dom/server';
import { Call, connect } from './call.js';
import { join as joinWithDevices } from './local/call-with-devices.testkit.js';
import { settingsOf } from './options.js';
import { platformOf } from './platform.js';
import type { Change, Track } from './protocol.generated.js';
import { nodePlatform, participant, startScriptedGateway, testToken, welcome } from './scripted-gateway.testkit.js';
import { INITIAL_SNAPSHOT } from './snapshot.js';

const camera: Track = { trackId: 'camera', kind: 'video', source: 'camera', muted: false };
const COUNT = 1_000;
const everyone = Array.from({ length: COUNT }, (_, at) => participant(`p${at}`, { tracks: [camera] }));
/** The participants are muted, each by a change of its own. */
const mutes = (from: number, count: number): Change[] =>
  everyone.slice(from, from + count).map(({ participantId, sessionId }) => ({
    kind: 'tracks',
    participantId,
    sessionId,
    tracks: [{ ...camera, muted: true }],
  }));

const calls: Call[] = [];
afterEach(async () => {
  await Promise.all(calls.splice(0).map((call) => call.leave()));
});

async function join(participants = everyone) {
  const gateway = await startScriptedGateway({ join: () => welcome({ participants }) });
  const call = await connect({ url: gateway.url, token: testToken, platform: nodePlatform });
  calls.push(call);
  // Until then, messages wait for listeners to be added after connect().
  await new Promise((resolve) => setTimeout(resolve, 20));
  return { call, connection: await gateway.connection(0) };
}

/** Entries of maps that are copied while the task runs. */
async function copiedDuring(task: () => Promise<unknown>): Promise<number> {
  const Original = globalThis.Map;
  let copied = 0;
  globalThis.Map = class<K, V> extends Original<K, V> {
    constructor(entries?: Iterable<readonly [K, V]> | null) {
      super(entries);
      if (entries instanceof Original) copied += entries.size;
    }
  };
  try {
    await task();
  } finally {
    globalThis.Map = Original;
  }
  return copied;
}

describe('the snapshot of a call', () => {
  test('is the same object until something changes, and then shares every part that has not', async () => {
    const { call, connection } = await join();
    const before = call.getSnapshot();
    connection.send({ type: 'changes', changes: [] }, { type: 'mediaState', state: 'up' });
    await call.send('a request whose answer comes after these messages');
    expect(call.getSnapshot()).toBe(before);

    connection.send({ type: 'changes', changes: mutes(0, 10) });
    await eventually(() => call.getSnapshot() !== before);
    const after = call.getSnapshot();
    expect(after.version).toBeGreaterThan(before.version);
    const changed = [...after.participants].filter(([id, one]) => one !== before.participants.get(id));
    expect(changed.map(([id]) => id)).toEqual(everyone.slice(0, 10).map(({ participantId }) => participantId));
    expect(before.participants.get('p0')!.tracks.get('camera')!.muted).toBe(false);
    expect(after).toEqual({ ...before, version: after.version, participants: after.participants });
    for (const name of ['room', 'participant', 'permissions', 'activeSpeakers', 'tracks', 'pending'] as const)
      expect(after[name]).toBe(before[name]);
  });

  test('of a room with 1,000 participants copies its map once per notification, however many of them change', async () => {
    const { call, connection } = await join();
    let notified = 0;
    call.subscribe(() => {
      notified += 1;
      call.getSnapshot();
    });
    const isMuted = (id: string) => call.getSnapshot().participants.get(id)!.tracks.get('camera')!.muted;
    const copied = await copiedDuring(async () => {
      for (let from = 0; from < 500; from += 50) {
        connection.send({ type: 'changes', changes: mutes(from, 50) });
        await eventually(() => isMuted(`p${from + 49}`));
      }
    });
    expect(notified).toBe(10);
    // Beside the map of the participants, each change copies the tracks of one participant.
    expect(copied).toBeLessThanOrEqual(notified * COUNT + 500);
    expect(copied).toBeGreaterThanOrEqual(COUNT);
  });

  test('is complete when its listener is called, and before an event', async () => {
    const { call, connection } = await join([participant('ada', { tracks: [camera] })]);
    const seen: unknown[] = [];
    const see = () => seen.push(call.getSnapshot().participants.get('ada')?.connected);
    call.on('participantUpdated', see);
    call.subscribe(see);
    connection.send({
      type: 'changes',
      changes: [{ kind: 'participant', participant: participant('ada', { connected: false }) }],
    });
    await eventually(() => seen.length === 2);
    expect(seen).toEqual([false, false]);
  });

  test('of no call, of one before its first connection, and of one that is over can be read', async () => {
    const fresh = new Call(platformOf(nodePlatform), settingsOf({ url: 'ws://127.0.0.1:1', token: testToken }));
    expect(fresh.getSnapshot()).toEqual({ ...INITIAL_SNAPSHOT, version: fresh.getSnapshot().version });
    await fresh.leave();
    const over = {
      state: 'closed',
      closeInfo: { reason: 'left' },
      room: undefined,
      participantCount: 0,
      viewerCount: 0,
    };
    expect(fresh.getSnapshot()).toMatchObject(over);
    const { call } = await join([participant('ada')]);
    let notified = 0;
    call.subscribe(() => (notified += 1));
    await call.leave();
    const last = call.getSnapshot();
    expect(last).toMatchObject({ state: 'closed', closeInfo: { reason: 'left' }, room: { id: 'room_1' } });
    await eventually(() => notified > 0);
    expect(call.getSnapshot()).toBe(last);
  });

  test('renders with React, also on a server', async () => {
    const { call } = await join([participant('ada')]);
    const Count = () => {
      const { participantCount } = useSyncExternalStore(call.subscribe, call.getSnapshot, () => INITIAL_SNAPSHOT);
      return createElement('b', undefined, participantCount);
    };
    expect(renderToString(createElement(Count))).toBe('<b>0</b>');
    const Present = () =>
      createElement(
        'b',
        undefined,
        useSyncExternalStore(call.subscribe, call.getSnapshot, call.getSnapshot).participantCount,
      );
    expect(renderToString(createElement(Present))).toBe('<b>2</b>');
  });

  test('has what speaks, the own metadata and the qualities as soon as they change', async () => {
    const { call, connection } = await join([participant('ada'), participant('bob')]);
    const before = call.getSnapshot();
    connection.send(
      { type: 'speakers', speakers: [{ participantId: 'bob', level: 0.3 }] },
      { type: 'quality', participants: [{ participantId: 'ada', level: 'poor' }] },
    );
    await call.updateMetadata({ hand: true });
    const { participants, activeSpeakers, participant: own } = call.getSnapshot();
    expect(activeSpeakers).toEqual([participants.get('bob')]);
    expect(participants.get('ada')).toMatchObject({ connectionQuality: 'poor', isSpeaking: false });
    expect([own!.metadata, before.participant!.metadata]).toEqual([{ hand: true }, {}]);
  });
});

describe('the listeners of a snapshot', () => {
  test('are called until they unsubscribe, each for itself, and in spite of the error of another', async () => {
    const report = jest.spyOn(console, 'error').mockImplementation(() => undefined);
    const { call, connection } = await join();
    let count = 0;
    const listener = () => (count += 1);
    const stop = call.subscribe(listener);
    call.subscribe(listener);
    const stopThrowing = call.subscribe(() => {
      throw new Error('of a listener');
    });
    const last = new Promise<void>((resolve) => call.subscribe(resolve));
    stop();
    connection.send({ type: 'changes', changes: mutes(0, 1) });
    await last;
    expect([count, report.mock.calls.length]).toEqual([1, 1]);
    stopThrowing();
    report.mockRestore();
  });
});

describe('local media in a snapshot', () => {
  test('is pending while a device opens and is muted, and another object after each change', async () => {
    const { call, state } = await joinWithDevices();
    let opening: unknown;
    state.before = () => (opening = call.getSnapshot().pending);
    await call.publish({ video: true });
    expect([opening, call.getSnapshot().pending]).toEqual([['camera'], []]);
    const published = call.getSnapshot().tracks.get('camera')!;
    expect(published).toMatchObject({ source: 'camera', muted: false, deviceId: 'cam-a' });
    const pending: string[] = [];
    call.subscribe(() => pending.push(call.getSnapshot().pending.join()));
    await call.mute('camera');
    expect(pending).toContain('camera');
    expect(call.getSnapshot().pending).toEqual([]);
    const muted = call.getSnapshot().tracks.get('camera')!;
    expect([published.muted, muted.muted, muted.attach === published.attach]).toEqual([false, true, true]);
    await call.unmute('camera');
    await call.switchDevice('videoinput', 'cam-b');
    expect(call.getSnapshot().tracks.get('camera')).toMatchObject({ muted: false, deviceId: 'cam-b' });
  });

  test('has the failure of each source until the next attempt', async () => {
    const { call, state } = await joinWithDevices();
    const failures = () => call.getSnapshot().failures.map(({ source, code }) => `${source} ${code}`);
    state.error = { video: 'NotReadableError' };
    await call.publish({ audio: true, video: true });
    expect(failures()).toEqual(['camera device_in_use']);
    await expect(call.switchDevice('audioinput', 'gone')).rejects.toMatchObject({ code: 'device_not_found' });
    expect(failures()).toEqual(['camera device_in_use', 'microphone device_not_found']);
    delete state.error;
    await call.publish({ video: true });
    expect(failures()).toEqual(['microphone device_not_found']);
  });
});
