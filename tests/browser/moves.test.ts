import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import { mediaFlows, type ParticipantPage } from './pages.testkit.js';

let stage: Call['stage'];
let enter: Call['enter'];
beforeAll(async () => {
  ({ stage, enter } = await openCall());
});

const idOf = async (page: ParticipantPage) => (await page.ask<{ participantId: string }>('ids')).participantId;
const movesOf = async (page: ParticipantPage) => (await page.events()).filter(({ name }) => name === 'moved').length;

/** Moves participants as a backend does, and waits until their pages have followed. */
async function move(from: string, moves: (readonly [page: ParticipantPage, roomId: string])[]): Promise<void> {
  const before = await Promise.all(moves.map(([page]) => movesOf(page)));
  const body = {
    moves: await Promise.all(moves.map(async ([page, roomId]) => ({ participantId: await idOf(page), roomId }))),
  };
  const answer = await stage.call('POST', `/v1/rooms/${from}/moves`, body);
  expect(answer.body.data.map(({ error }: { error: unknown }) => error)).toEqual(moves.map(() => null));
  await Promise.all(
    moves.map(([page], n) => eventually(async () => (await movesOf(page)) > before[n]!, { timeoutMs: 60_000 })),
  );
}

test('two people who are moved see and hear each other in the other room, with the same devices and call', async () => {
  const [from, to] = [await stage.newRoom(), await stage.newRoom()];
  const both = [await enter(from, 'Ada'), await enter(from, 'Bob')];
  await mediaFlows(both);
  await Promise.all(both.map((page) => page.ask('measurePauses')));
  await move(
    from,
    both.map((page) => [page, to]),
  );
  await mediaFlows(both);
  const pauses = await Promise.all(both.map((page) => page.ask('pauses')));
  process.stderr.write(`    measured: a move: longest pauses in ms, Ada and Bob: ${JSON.stringify(pauses)}\n`);
  const names = await Promise.all(both.map(async (page) => (await page.events()).map(({ name }) => name)));
  for (const seen of names) expect(seen.filter((name) => ['closed', 'problem'].includes(name))).toEqual([]);
  expect((await stage.eventTypes(to)).filter((type) => type === 'participant.joined')).toHaveLength(2);
});
