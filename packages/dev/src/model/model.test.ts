import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { SESSION_TRANSITIONS, TRANSITIONS } from '@callplane/runtime';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { root } from '../bootstrap.js';
import { SEEDED_BUGS } from './bugs.js';
import { PROGRESS } from './explore.js';
import { MODEL_INVARIANTS, type SpecFile } from './invariants.js';
import type { QuickResults } from './quick-check.js';

let results: QuickResults;
// A process of its own: in a context of Jest, Quint needs three times the processor time.
beforeAll(async () => {
  const main = pathToFileURL(join(root, 'packages/dev/dist/model/main.js')).href;
  const code = `import { main } from '${main}'; main(['--quick']);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code]);
  results = JSON.parse(stdout) as QuickResults;
});

test('the specifications have no error of types or effects', () => {
  expect(results.typeErrors).toEqual([]);
});

test('the scenarios of the specifications end as they say', () => {
  expect(results.scenarios.length).toBeGreaterThan(3);
  expect(results.scenarios.filter(({ isPassed }) => !isPassed)).toEqual([]);
});

test('each invariant has a seeded bug', () => {
  for (const file of Object.keys(MODEL_INVARIANTS) as SpecFile[]) {
    const broken = SEEDED_BUGS.filter((bug) => bug.file === file).map(({ breaks }) => breaks);
    expect([...new Set(broken)].filter((name) => name !== PROGRESS).sort()).toEqual([...MODEL_INVARIANTS[file]].sort());
  }
});

test('the code logs its transitions under names of moves', () => {
  const leases = readFileSync(join(root, 'specs/leases.qnt'), 'utf8');
  expect(TRANSITIONS.filter((name) => !new RegExp(`going\\("${name}"|name: "${name}"`).test(leases))).toEqual([]);
  const sessions = readFileSync(join(root, 'specs/sessions.qnt'), 'utf8');
  const isMove = (name: string) => new RegExp(`move\\("${name}"|move\\(if \\(hasOwn\\).*"${name}"`).test(sessions);
  expect(SESSION_TRANSITIONS.filter((name) => !isMove(name))).toEqual([]);
});

describe('the model', () => {
  test.each(['operations', 'deliveries', 'resumptions'])(
    'keeps the invariants in every reachable state of %s, and can always reach the end of its work',
    (module) => {
      expect(results.explored[module]).toMatchObject({ isExhaustive: true, violation: null });
      expect(results.explored[module]!.states).toBeGreaterThan(300);
    },
  );

  test.each(['lines', 'rooms'])('keeps the invariants in random walks through %s', (module) => {
    expect(results.walked[module]).toMatchObject({ violation: null });
    expect(results.walked[module]!.states).toBeGreaterThan(100);
  });

  test.each(SEEDED_BUGS)('finds that this bug breaks $breaks: $name', ({ name, breaks }) => {
    expect(results.bugs[name]).toMatchObject({ invariant: breaks });
    expect(results.bugs[name]!.moves.length).toBeGreaterThan(0);
  });
});
