import { expect, test } from '@jest/globals';
import { readAnswer } from './advisories.js';
import { duplicates, isAllowed, checkInstallScripts, checkLicences, checkTable, readTable } from './rules.js';
import type { Package } from './tree.js';

const aPackage = (facts: Partial<Package>) => ({
  name: 'a',
  version: '1.0.0',
  licence: 'MIT',
  scripts: [],
  shipped: false,
  ...facts,
});

test.each([
  ['MIT', true],
  ['GPL-3.0', false],
  ['(MIT OR GPL-3.0)', true],
  ['GPL-3.0 OR MIT', true],
  ['(MIT AND GPL-3.0)', false],
  ['MIT and ISC', true],
  ['(GPL-3.0 OR MIT) AND ISC', true],
  ['MIT AND (GPL-3.0 OR AGPL-3.0)', false],
  ['(MIT', false],
  ['MIT ISC', false],
  ['', false],
  ['SEE LICENSE IN LICENSE', false],
])('the licence %s is allowed: %s', (expression, expected) => {
  expect(isAllowed(expression, ['MIT', 'ISC'])).toBe(expected);
});

test('licences in images follow stricter rules than those of tools, and a missing licence is a finding', () => {
  expect(checkLicences([aPackage({ licence: 'MPL-2.0' }), aPackage({ shipped: true })])).toEqual([]);
  expect(checkLicences([aPackage({ licence: 'MPL-2.0', shipped: true }), aPackage({ licence: null })])).toEqual([
    'a@1.0.0 (in an image) has the licence MPL-2.0',
    'a@1.0.0 (a tool) names no licence',
  ]);
});

test('finds an install script that no list names', () => {
  const packages = ['run', 'left', 'new'].map((name) => aPackage({ name, scripts: ['postinstall'] }));
  expect(checkInstallScripts([...packages, aPackage({})], { built: ['run'], ignored: ['left'] })).toEqual([
    'new@1.0.0 has install scripts (postinstall)',
  ]);
});

test('every direct dependency has a row with a reason and alternatives, and every row names a direct dependency', () => {
  const rows = readTable(
    ['| dependency | why it | what else |', '| --- | --- | --- |', '| a, b | good | c |', '| d | | |'].join('\n'),
  );
  expect(checkTable(['a', 'b', 'd'], rows)).toEqual([expect.stringMatching(/^the row of d gives no reason/)]);
  expect(checkTable(['a', 'e', 'd', 'b'], rows)).toContain('e has no row');
  expect(checkTable(['a', 'd'], rows)).toContain('b has a row and is not in the catalogue');
});

test('lists direct dependencies with several versions', () => {
  const packages = [aPackage({}), aPackage({ version: '2.0.0', shipped: true }), aPackage({ name: 'b' })];
  expect(duplicates(packages, ['a', 'b'])).toEqual([{ name: 'a', versions: ['1.0.0', '2.0.0'], shipped: 1 }]);
});

test('a failed answer of the registry is not mistaken for an empty list of advisories', () => {
  expect(readAnswer('{"error":{"code":"E","message":"responded with 405"}}')).toEqual({
    unanswered: 'responded with 405',
  });
  expect(readAnswer('', 'no network')).toEqual({ unanswered: 'no network' });
  expect(readAnswer('{}')).toHaveProperty('unanswered');
  expect(readAnswer('{"advisories":{}}')).toEqual({ advisories: [] });
  const known = { module_name: 'a', severity: 'high', title: 'bad', url: 'https://example.com' };
  expect(readAnswer(JSON.stringify({ advisories: { 1: known } }))).toEqual({
    advisories: [{ package: 'a', severity: 'high', title: 'bad', url: 'https://example.com' }],
  });
});
