import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { INVARIANTS } from './invariants.js';

const page = readFileSync(join(repositoryRoot, 'docs/guarantees.md'), 'utf8');
const [guarantees = '', invariants = ''] = page.split('## Check your own deployment');

test('every invariant backs a guarantee and is explained, and no other name is', () => {
  const names = INVARIANTS.map(({ name }) => name).sort();
  expect([...invariants.matchAll(/^\| `([a-z-]+)`/gm)].map(([, name]) => name).sort()).toEqual(names);
  for (const name of names) expect(guarantees).toContain(`\`${name}\``);
});

test('every guarantee has a number of its own and names a check', () => {
  const rows = [...guarantees.matchAll(/^\| ([A-Z]\d+) +\|.*\|.*\|(.*)\|$/gm)];
  expect(new Set(rows.map(([, number]) => number)).size).toBe(rows.length);
  expect(rows.length).toBeGreaterThan(15);
  for (const [, , check] of rows) expect(check).toMatch(/test\.ts|`[a-z-]+`|index|key/);
});

test('every test that a guarantee names exists and has tests', () => {
  const files = [...guarantees.matchAll(/^\| [A-Z]\d.*/gm)].flatMap(([row]) =>
    [...row.matchAll(/\]\(\.\.\/([^)]+\.test\.ts)\)/g)].map(([, file]) => file!),
  );
  expect(new Set(files).size).toBeGreaterThan(15);
  for (const file of new Set(files)) {
    expect([file, /^\s*test[.(]/m.test(readFileSync(join(repositoryRoot, file), 'utf8'))]).toEqual([file, true]);
  }
});
