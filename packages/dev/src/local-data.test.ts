import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@callplane/testing';
import { afterEach, expect, test } from '@jest/globals';
import { devFileOf, rememberDataDirectory, runningDataDirectory } from './local-data.js';

const given = process.env['DATA_DIR'];
afterEach(() => {
  if (given === undefined) delete process.env['DATA_DIR'];
  else process.env['DATA_DIR'] = given;
});

test('rtc finds the latest start, unless DATA_DIR names one or one runs in the usual folder', () => {
  const usual = temporaryDirectory('data-dir');
  const file = join(usual, 'tools', 'data-dir');
  process.env['DATA_DIR'] = '';
  expect(runningDataDirectory(usual, file)).toBe(usual);
  rememberDataDirectory('/data/elsewhere', file);
  expect(runningDataDirectory(usual, file)).toBe('/data/elsewhere');
  process.env['DATA_DIR'] = usual;
  expect(runningDataDirectory(usual, file)).toBe(usual);
  process.env['DATA_DIR'] = '';
  writeFileSync(devFileOf(usual), '{}');
  expect(runningDataDirectory(usual, file)).toBe(usual);
});
