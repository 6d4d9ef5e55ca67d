import { describe, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { MediaWrites, type MediaWritesDeps } from './media-writes.js';

const session = (n: number, roomId = 'room') => ({
  held: { sessionId: `sess_${n}`, connection: 1 },
  roomId,
  isGone: false,
  mediaState: { n } as unknown,
});

function setUp() {
  const written: { sessionId: string; media: unknown }[] = [];
  const warnings: string[] = [];
  /** Rooms that another transaction has locked, with the writes that wait. */
  const locked = new Map<string, (() => void)[]>();
  const server = { failures: 0, isHeld: true };
  const media: MediaWritesDeps['writes']['media'] = async (roomId, sessionId, take) => {
    await Promise.resolve();
    const waiting = locked.get(roomId);
    if (waiting !== undefined) await new Promise<void>((go) => waiting.push(go));
    const row = take();
    if (row === null) return true;
    if (server.failures > 0) {
      server.failures -= 1;
      throw new Error('no database');
    }
    written.push({ sessionId, media: row.media });
    return server.isHeld;
  };
  const writes = new MediaWrites({
    writes: { media },
    logger: { warn: (message: string) => warnings.push(message) },
  } as unknown as MediaWritesDeps);
  return { writes, written, warnings, locked, server };
}

describe('the writes of media records', () => {
  test('write the latest state of a session a moment after its changes, once', async () => {
    const { writes, written } = setUp();
    const [one, two] = [session(1), session(2)];
    writes.changed(one);
    writes.changed(two);
    one.mediaState = { n: 'later' };
    writes.changed(one);
    expect(written).toEqual([]);
    await eventually(() => written.length > 0);
    expect(written).toEqual([
      { sessionId: 'sess_1', media: { n: 'later' } },
      { sessionId: 'sess_2', media: { n: 2 } },
    ]);
    writes.close();
  });

  test('repeat what could not be written, except for sessions that are gone', async () => {
    const { writes, written, warnings, server } = setUp();
    const [stays, gone] = [session(1), session(2)];
    server.failures = 2;
    writes.changed(stays);
    writes.changed(gone);
    await writes.flush();
    expect(warnings).toEqual(['media record not written', 'media record not written']);
    gone.isGone = true;
    await writes.flush();
    expect(written).toEqual([{ sessionId: 'sess_1', media: { n: 1 } }]);
    writes.close();
  });

  test('leave out a record that was written before, unless another statement has written one since', async () => {
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

  test('write a record again that this gateway could not write because it did not hold the session', async () => {
    const { writes, written, server } = setUp();
    const one = session(1);
    for (const isHeld of [false, true, true]) {
      server.isHeld = isHeld;
      writes.changed(one);
      await writes.flush();
    }
    expect(written).toHaveLength(2);
    writes.close();
  });

  test('of a locked room delay no other, and leave out sessions that go meanwhile', async () => {
    const { writes, written, locked } = setUp();
    const waiting: (() => void)[] = [];
    locked.set('locked', waiting);
    const [stays, gone] = [session(1, 'locked'), session(2, 'locked')];
    writes.changed(stays);
    writes.changed(gone);
    await eventually(() => waiting.length === 2);
    writes.changed(session(3));
    await eventually(() => written.length === 1);
    gone.isGone = true;
    const flushed = writes.flush();
    for (const go of waiting) go();
    await flushed;
    expect(written.map(({ sessionId }) => sessionId)).toEqual(['sess_3', 'sess_1']);
    writes.close();
  });
});
