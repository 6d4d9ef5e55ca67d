import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TRANSITIONS } from '@callplane/runtime';
import { describe, expect, test } from '@jest/globals';
import { root } from '../bootstrap.js';
import { exploreAll, PROGRESS, randomFrom, walkAtRandom } from './explore.js';
import { MODEL_INVARIANTS, type SpecFile } from './invariants.js';
import { SEEDED_BUGS } from './bugs.js';
import { readSource } from './spec.js';

const sources = {
  'leases.qnt': readSource('leases.qnt'),
  'sessions.qnt': readSource('sessions.qnt'),
};

describe.each(Object.keys(sources) as SpecFile[])('the specification %s', (file) => {
  test('has no error of types or effects', () => {
    expect(sources[file].typeErrors()).toEqual([]);
  });

  test('has an invariant for each seeded bug and a seeded bug for each invariant', () => {
    const broken = SEEDED_BUGS.filter((bug) => bug.file === file).map(({ breaks }) => breaks);
    expect([...new Set(broken)].filter((name) => name !== PROGRESS).sort()).toEqual([...MODEL_INVARIANTS[file]].sort());
  });
});

test('the code logs its transitions under names of moves', () => {
  const text = readFileSync(join(root, 'specs/leases.qnt'), 'utf8');
  expect(TRANSITIONS.filter((name) => !new RegExp(`going\\("${name}"|name: "${name}"`).test(text))).toEqual([]);
});

describe('the model', () => {
  test.each([
    ['leases.qnt', 'operations'],
    ['leases.qnt', 'deliveries'],
  ] as const)(
    '%s: every reachable state of %s keeps the invariants, and can reach the end of its work',
    (file, module) => {
      const found = exploreAll(sources[file].open(module), MODEL_INVARIANTS[file], 3000);
      expect(found).toMatchObject({ isExhaustive: true, violation: null });
    },
  );

  test.each([
    ['leases.qnt', 'lines'],
    ['sessions.qnt', 'rooms'],
  ] as const)('%s: random walks through %s keep the invariants', (file, module) => {
    const found = walkAtRandom(sources[file].open(module), MODEL_INVARIANTS[file], {
      walks: 12,
      movesMax: 30,
      random: randomFrom(7),
    });
    expect(found.violation).toBeNull();
    expect(found.states).toBeGreaterThan(100);
  });

  test.each(SEEDED_BUGS)('$breaks finds the bug "$name"', ({ file, module, edit: [from, to], breaks }) => {
    const source = readSource(file, (text) => {
      expect(text.split(from)).toHaveLength(2);
      return text.replace(from, to);
    });
    const found = exploreAll(source.open(module), MODEL_INVARIANTS[file], 3000);
    expect(found.violation).toMatchObject({ invariant: breaks });
    expect(found.violation!.moves.length).toBeGreaterThan(1);
  });
});
