import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { stopAtEnd } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { FAULT_KINDS, type FaultKind } from './faults.js';
import type { Fleet } from '../fleet/fleet.js';
import type { HistoryWriter } from './history-writer.js';
import type { NemesisLine } from './history.js';
import { Nemesis } from './nemesis.js';
import { Random } from '../random.js';

/** A fleet that writes down its faults. */
function newFleet({ hasSmallDisks = true, hasClocks = true, fails = '' } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'callplane-nemesis-'));
  stopAtEnd(() => rm(folder, { recursive: true }));
  const done: string[] = [];
  const does = (name: string) => async (): Promise<void> => {
    done.push(name);
    await setImmediate();
    if (name === fails) throw new Error(`${name} is not possible`);
  };
  const machine = (name: string) => ({
    name,
    kill: does(`kill ${name}`),
    freeze: does(`freeze ${name}`),
    thaw: does(`thaw ${name}`),
    stop: does(`stop ${name}`),
    start: does(`start ${name}`),
  });
  const cable = (name: string) => ({ cut: does(`cut ${name}`), heal: does(`heal ${name}`) });
  const nodes = [{ machine: machine('postgres 1') }, { machine: machine('postgres 2') }];
  const redis = machine('redis');
  const clockFile = join(folder, 'clock');
  const fleet = {
    postgres: {
      nodes,
      primary: nodes[0],
      hasSmallDisks,
      fill: does('fill'),
      empty: does('empty'),
      promote: does('promote'),
      inStep: does('in step'),
    },
    redis: {
      servers: [redis],
      sentinels: [machine('sentinel')],
      master: () => Promise.resolve(redis),
      flush: does('flush'),
      demote: does('demote'),
      setUsers: (rules: string) => does(`users ${rules}`)(),
    },
    nginx: machine('nginx'),
    store: { lose: does('lose store'), find: does('find store') },
    media: { januses: [machine('janus')], coturn: machine('coturn') },
    instances: [
      { machine: machine('api'), database: [cable('database')], front: cable('front'), media: [], clockFile: null },
      {
        machine: machine('signaling'),
        database: [cable('database')],
        front: null,
        media: [cable('media')],
        clockFile: hasClocks ? clockFile : null,
      },
    ],
  };
  return { fleet: fleet as unknown as Fleet, done, clockFile };
}

/** Plays this many faults without their time. */
function play(kinds: readonly FaultKind[], { seed = 1, count = 1 } = {}, { fleet } = newFleet()) {
  const lines: Omit<NemesisLine, 'n' | 'wall'>[] = [];
  const history = { nowMs: 0, write: (_: string, line: NemesisLine) => void lines.push(line) };
  const writer = history as unknown as HistoryWriter;
  const nemesis = new Nemesis(fleet, writer, new Random(seed), kinds, () => setImmediate());
  // Faults that are left out do not count.
  let looks = 0;
  const run = nemesis.run(() => nemesis.count >= count || (looks += 1) > count * 50);
  return { lines, nemesis, run };
}

test.each(FAULT_KINDS)('the fault %s undoes its changes', async (kind) => {
  const made = newFleet();
  const { run, lines } = play([kind], { count: 4 }, made);
  await run;
  expect(lines.length).toBeGreaterThanOrEqual(8);
  const begun = lines.filter(({ what }) => what === 'begin').map(({ fault }) => fault);
  const ended = lines.filter(({ what, detail }) => what === 'end' && detail === '').map(({ fault }) => fault);
  expect(ended.sort()).toEqual(begun.sort());
  const count = (pattern: RegExp): number => made.done.filter((name) => pattern.test(name)).length;
  if (kind !== 'promote') {
    expect(count(/^(kill|stop) /) + count(/^fill$/)).toBe(count(/^start /));
    expect(count(/^freeze /)).toBe(count(/^thaw /));
  } else expect(count(/^(kill|freeze) postgres 1$/)).toBe(count(/^promote$/));
  expect(count(/^cut /)).toBe(count(/^heal /));
  expect(count(/^fill$/)).toBe(count(/^empty$/));
  if (kind === 'clock') expect(readFileSync(made.clockFile, 'utf8')).toBe('+0\n');
});

test('a seed chooses the same faults again, and another one others', async () => {
  const faultsOf = async (seed: number): Promise<string[]> => {
    const { run, lines } = play(FAULT_KINDS, { seed, count: 30 });
    await run;
    return lines.filter(({ what }) => what === 'begin').map(({ action, target }) => `${action} ${target}`);
  };
  const first = await faultsOf(7);
  expect(await faultsOf(7)).toEqual(first);
  expect(await faultsOf(8)).not.toEqual(first);
});

test('every kind happens before one is chosen by its weight', async () => {
  const { run, nemesis } = play(FAULT_KINDS, { count: FAULT_KINDS.length });
  await run;
  expect([...nemesis.counts.keys()]).toEqual(FAULT_KINDS);
  for (const count of nemesis.counts.values()) expect(count).toBeGreaterThan(0);
});

test('the master of Redis is chosen more often than the other servers and Sentinels', async () => {
  const { run, lines } = play(['kill-redis'], { count: 20 });
  await run;
  const targets = lines.filter(({ what }) => what === 'begin').map(({ target }) => target);
  expect(targets.filter((target) => target === 'redis, the master').length).toBeGreaterThan(5);
  expect(targets).toContain('sentinel');
});

test('PostgreSQL has one fault at a time', async () => {
  const { run, lines } = play(['kill-postgres', 'freeze-postgres', 'promote', 'fill'], { count: 30 });
  await run;
  let open = 0;
  for (const { what } of lines) {
    open += what === 'begin' ? 1 : -1;
    expect(open).toBeLessThanOrEqual(1);
  }
  expect(lines.length).toBeGreaterThanOrEqual(60);
});

test('a machine without small disks and libfaketime has no fault that needs them', async () => {
  const { run, nemesis } = play(['fill', 'clock'], { count: 1 }, newFleet({ hasSmallDisks: false, hasClocks: false }));
  await run;
  expect(nemesis.count).toBe(0);
});

test('a fault that cannot end is named, and the other faults end first', async () => {
  const { run, lines } = play(['kill-app', 'cut'], { count: 100 }, newFleet({ fails: 'start api' }));
  await expect(run).rejects.toThrow(/^fault f\d+ \(kill api\) failed: start api is not possible$/);
  const begun = lines.filter(({ what }) => what === 'begin');
  expect(lines.filter(({ what }) => what === 'end')).toHaveLength(begun.length);
  expect(lines.filter(({ detail }) => detail.startsWith('failed: '))).toHaveLength(1);
});
