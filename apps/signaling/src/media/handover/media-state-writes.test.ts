import { describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import type { Logger } from '@callplane/runtime';
import { MediaStateWrites } from './media-state-writes.js';
import { readMediaState } from './media-state.js';

const session = (n: number) => ({ held: { sessionId: `sess_${n}`, connection: 1 }, mediaState: { n } as unknown });

const isHeldBy = (isHeld: boolean) => (states: { held: { sessionId: string } }[]) => ({
  written: new Set(isHeld ? states.map(({ held }) => held.sessionId) : []),
  busy: new Set<string>(),
});

function setUp() {
  const written: { sessionId: string; media: unknown }[][] = [];
  let failures = 0;
  const warnings: string[] = [];
  const locked = new Set<string>();
  /** Let slow writes go on. */
  const waiting: (() => void)[] = [];
  const server = { isSlow: false };
  const logger = { warn: (message: string) => warnings.push(message) } as unknown as Logger;
  const writes = new MediaStateWrites(async (states, { skipLocked }) => {
    if (failures > 0) {
      failures -= 1;
      throw new Error('no database');
    }
    const isBusy = (id: string) => skipLocked && locked.has(id);
    const free = states.filter(({ held }) => !isBusy(held.sessionId));
    written.push(free.map(({ held, media }) => ({ sessionId: held.sessionId, media })));
    if (server.isSlow) await new Promise<void>((go) => waiting.push(go));
    return { ...isHeldBy(true)(free), busy: new Set(states.map(({ held }) => held.sessionId).filter(isBusy)) };
  }, logger);
  return { writes, written, warnings, locked, waiting, server, fail: (times: number) => (failures = times) };
}

describe('the writes of media states', () => {
  test('write the changes of many sessions in one statement, each with its latest state', async () => {
    const { writes, written } = setUp();
    const [one, two] = [session(1), session(2)];
    writes.changed(one);
    writes.changed(two);
    one.mediaState = { n: 'later' };
    writes.changed(one);
    expect(written).toEqual([]);
    await eventually(() => written.length > 0);
    expect(written).toEqual([
      [
        { sessionId: 'sess_1', media: { n: 'later' } },
        { sessionId: 'sess_2', media: { n: 2 } },
      ],
    ]);
    writes.close();
  });

  test('repeat what could not be written, except for sessions that are gone', async () => {
    const { writes, written, warnings, fail } = setUp();
    const [stays, gone] = [session(1), session(2)];
    fail(1);
    writes.changed(stays);
    writes.changed(gone);
    await writes.flush();
    expect(warnings).toEqual(['media states not written']);
    writes.forget(gone);
    await writes.flush();
    expect(written).toEqual([[{ sessionId: 'sess_1', media: { n: 1 } }]]);
    writes.close();
  });

  test('say whether this gateway holds the session', async () => {
    const { writes } = setUp();
    expect(await writes.writeNow(session(1))).toBe(true);
    const elsewhere = new MediaStateWrites((states) => Promise.resolve(isHeldBy(false)(states)), {} as Logger);
    expect(await elsewhere.writeNow(session(1))).toBe(false);
  });

  test('ask for many sessions in one statement whether this gateway holds them', async () => {
    const { writes, written } = setUp();
    const sessions = Array.from({ length: 20 }, (_, n) => session(n));
    expect(new Set(await Promise.all(sessions.map((one) => writes.writeNow(one))))).toEqual(new Set([true]));
    expect(written.map(({ length }) => length)).toEqual([20]);
  });

  test('leave out a state that was written before, unless another statement has written one since', async () => {
    const { writes, written } = setUp();
    const one = session(1);
    for (const isOverwritten of [false, false, true]) {
      if (isOverwritten) writes.overwritten(one);
      writes.changed(one);
      await writes.flush();
    }
    expect(written).toHaveLength(2);
    writes.close();
  });

  test('write a state again that this gateway could not write because it did not hold the session', async () => {
    let statements = 0;
    const writes = new MediaStateWrites((states) => {
      statements += 1;
      return Promise.resolve(isHeldBy(statements > 1)(states));
    }, {} as Logger);
    const one = session(1);
    for (let n = 0; n < 3; n += 1) {
      writes.changed(one);
      await writes.flush();
    }
    expect(statements).toBe(2);
    writes.close();
  });

  test('leave out locked sessions until they are free, but wait for them when they flush', async () => {
    const { writes, written, locked } = setUp();
    locked.add('sess_1');
    writes.changed(session(1));
    writes.changed(session(2));
    await eventually(() => written.length > 1);
    expect(written.slice(0, 2)).toEqual([[{ sessionId: 'sess_2', media: { n: 2 } }], []]);
    await writes.flush();
    expect(written.at(-1)).toEqual([{ sessionId: 'sess_1', media: { n: 1 } }]);
    writes.close();
  });

  test('run one at a time, and leave out sessions that are forgotten during the one before', async () => {
    const { writes, written, waiting, server } = setUp();
    server.isSlow = true;
    const [first, second, forgotten] = [session(1), session(2), session(3)];
    writes.changed(first);
    const flushed = writes.flush();
    writes.changed(second);
    writes.changed(forgotten);
    const again = writes.flush();
    expect(written).toHaveLength(1);
    writes.forget(forgotten);
    forgotten.mediaState = null;
    writes.changed(forgotten);
    server.isSlow = false;
    waiting[0]!();
    await Promise.all([flushed, again]);
    expect(written).toEqual([[{ sessionId: 'sess_1', media: { n: 1 } }], [{ sessionId: 'sess_2', media: { n: 2 } }]]);
    writes.close();
  });

  test('do not put back a forgotten session after a failure', async () => {
    const { writes, written, waiting, server, fail } = setUp();
    server.isSlow = true;
    const sessions = Array.from({ length: 501 }, (_, n) => session(n));
    for (const one of sessions) writes.changed(one);
    const flushed = writes.flush();
    writes.forget(sessions[500]!);
    fail(1);
    server.isSlow = false;
    waiting[0]!();
    await flushed;
    await writes.flush();
    expect(written.flat().map(({ sessionId }) => sessionId)).not.toContain('sess_500');
    writes.close();
  });
});

describe('a media state', () => {
  const state = {
    connection: 2,
    nodeId: 'm1',
    generation: 1,
    janusSession: 7,
    publisher: { handle: 1, feedId: 'feed', peerConnection: '- 1' },
    subscriber: { handle: 2, offerId: 3, sectionCount: 1, sections: [] },
    choices: [['part_1/cam', { selected: false, paused: false }]],
  };

  test('is read as it was written', () => {
    expect(readMediaState(JSON.parse(JSON.stringify(state)))).toEqual(state);
  });

  test.each([
    ['nothing', null],
    ['a text', 'm1'],
    ['a state without a session', { ...state, janusSession: undefined }],
    ['a state with another form of node', { ...state, nodeId: 1 }],
  ])('is not made from %s', (_, value) => {
    expect(readMediaState(value)).toBeNull();
  });

  test('loses a half of another form, and keeps the other one', () => {
    expect(readMediaState({ ...state, subscriber: { handle: 2 } })).toEqual({ ...state, subscriber: null });
    expect(readMediaState({ ...state, publisher: { handle: 'one' } })).toEqual({ ...state, publisher: null });
    expect(readMediaState({ ...state, choices: 'none' })).toEqual({ ...state, choices: [] });
  });
});
