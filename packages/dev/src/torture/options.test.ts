import { describe, expect, test } from '@jest/globals';
import { FAULT_KINDS } from './fault-kinds.js';
import { readOptions } from './options.js';

describe('the options of a torture run', () => {
  test('choose from all kinds of faults, or from those that are named', () => {
    expect(readOptions([]).faults).toEqual(FAULT_KINDS);
    expect(readOptions(['--faults', 'cut,fill']).faults).toEqual(['cut', 'fill']);
  });

  test('name a deployment with the keys of its tenants', () => {
    const { target } = readOptions(['--base-url', 'https://calls.example.com', '--key', 'a', '--key', 'b']);
    expect(target).toMatchObject({ baseUrl: 'https://calls.example.com', keys: ['a', 'b'] });
  });

  test.each([
    [['--minutes', 'abc'], '--minutes must be above 0'],
    [['--seed', '-1'], '--seed must be a whole number'],
    [['--faults', 'cut,fire'], '--faults has no kind "fire". There are kill-app'],
    [['--base-url', 'https://calls.example.com'], '--base-url needs --key'],
    [['--base-url', 'calls', '--key', 'a'], '--base-url must be a URL, not calls'],
    [['--fault', 'cut'], "Unknown option '--fault'"],
  ])('%j are refused with one sentence', (args, sentence) => {
    expect(() => readOptions(args)).toThrow(sentence);
  });
});
