import { expect, test } from '@jest/globals';
import { runWanted, type Wanted } from './batch.js';

const waiting = (input: number, wanted: Wanted) => ({ input, wanted: () => wanted });

test('runs a batch without the clients that have gone, and gives each client its own outcome', async () => {
  const items = [waiting(1, 'disconnected'), waiting(2, 'yes'), waiting(3, 'drain'), waiting(4, 'yes')];
  const ran: number[][] = [];
  const outcomes = await runWanted(items, async (inputs) => {
    ran.push(inputs);
    return inputs.map((input) => ({ outcome: 'done', input }));
  });
  expect(ran).toEqual([[2, 4]]);
  expect(outcomes).toEqual([
    { outcome: 'disconnected' },
    { outcome: 'done', input: 2 },
    { outcome: 'drain' },
    { outcome: 'done', input: 4 },
  ]);
});

test('does not run a batch that no client waits for', async () => {
  const outcomes = await runWanted([waiting(1, 'drain')], () => Promise.reject(new Error('it ran')));
  expect(outcomes).toEqual([{ outcome: 'drain' }]);
});
