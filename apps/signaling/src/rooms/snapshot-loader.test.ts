import { expect, test } from '@jest/globals';
import type { RoomSnapshot } from '@callplane/db';
import { SnapshotLoader } from './snapshot-loader.js';

function setUp() {
  const reads: { roomIds: string[]; finish: () => void; fail: (error: Error) => void }[] = [];
  const applied: string[] = [];
  const loader = new SnapshotLoader(
    (roomIds) =>
      new Promise((resolve, reject) => {
        reads.push({
          roomIds,
          finish: () => resolve(new Map(roomIds.map((id) => [id, {} as RoomSnapshot]))),
          fail: reject,
        });
      }),
    (roomId) => applied.push(roomId),
  );
  const turn = () => new Promise(setImmediate);
  return { reads, applied, loader, turn };
}

test('what is asked for in one turn is read together, each room once', async () => {
  const { reads, applied, loader, turn } = setUp();
  const loads = [loader.load('a'), loader.load('b'), loader.load('a')];
  await turn();
  expect(reads.map(({ roomIds }) => roomIds)).toEqual([['a', 'b']]);
  reads[0]!.finish();
  await Promise.all(loads);
  expect(applied).toEqual(['a', 'b']);
});

test('a load that is asked for during a read waits for one that begins after it; many such share one', async () => {
  const { reads, loader, turn } = setUp();
  const first = loader.load('a');
  await turn();
  let done = 0;
  const later = [1, 2, 3].map(() => loader.load('a').then(() => (done += 1)));
  await turn();
  expect(reads).toHaveLength(1);
  reads[0]!.finish();
  await first;
  expect(done).toBe(0);
  await turn();
  expect(reads).toHaveLength(2);
  reads[1]!.finish();
  await Promise.all(later);
  expect(done).toBe(3);
});

test('other rooms do not wait for a slow one', async () => {
  const { reads, applied, loader, turn } = setUp();
  void loader.load('slow');
  await turn();
  const quick = loader.load('quick');
  await turn();
  reads[1]!.finish();
  await quick;
  expect(applied).toEqual(['quick']);
});

test('a read that fails is told to those who wait, and the next one goes on', async () => {
  const { reads, loader, turn } = setUp();
  const failing = loader.load('a');
  await turn();
  reads[0]!.fail(new Error('away'));
  await expect(failing).rejects.toThrow('away');
  const next = loader.load('a');
  await turn();
  reads[1]!.finish();
  await next;
});
