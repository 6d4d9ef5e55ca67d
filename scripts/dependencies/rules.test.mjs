import { expect, test } from '@jest/globals';
import { readAnswer } from './advisories.mjs';
import { duplicates, isAllowed, judgeInstallScripts, judgeLicences, judgeTable, readTable } from './rules.mjs';

/** @param {Partial<import('./tree.mjs').Package>} facts */
const aPackage = (facts) => ({ name: 'a', version: '1.0.0', licence: 'MIT', scripts: [], shipped: false, ...facts });

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

test('what an image holds is judged more strictly than a tool, and a missing licence is none', () => {
  expect(judgeLicences([aPackage({ licence: 'MPL-2.0' }), aPackage({ shipped: true })])).toEqual([]);
  expect(judgeLicences([aPackage({ licence: 'MPL-2.0', shipped: true }), aPackage({ licence: null })])).toEqual([
    'a@1.0.0 (in an image) has the licence MPL-2.0',
    'a@1.0.0 (a tool) has the licence that it does not name',
  ]);
});

test('an install script that nobody listed is found', () => {
  const packages = ['run', 'left', 'new'].map((name) => aPackage({ name, scripts: ['postinstall'] }));
  expect(judgeInstallScripts([...packages, aPackage({})], { built: ['run'], ignored: ['left'] })).toEqual([
    'new@1.0.0 has install scripts (postinstall)',
  ]);
});

test('every direct dependency has a row that says why it and what else there was, and every row is one', () => {
  const rows = readTable(
    ['| dependency | why it | what else |', '| --- | --- | --- |', '| a, b | good | c |', '| d | | |'].join('\n'),
  );
  expect(judgeTable(['a', 'b', 'd'], rows)).toEqual([expect.stringMatching(/^the row of d does not say/)]);
  expect(judgeTable(['a', 'e', 'd', 'b'], rows)).toContain('e has no row');
  expect(judgeTable(['a', 'd'], rows)).toContain('b has a row and is not in the catalogue');
});

test('direct dependencies in several versions are listed', () => {
  const packages = [aPackage({}), aPackage({ version: '2.0.0', shipped: true }), aPackage({ name: 'b' })];
  expect(duplicates(packages, ['a', 'b'])).toEqual([{ name: 'a', versions: ['1.0.0', '2.0.0'], shipped: 1 }]);
});

test('a registry that does not answer is not taken for one that knows nothing', () => {
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
