import { describe, expect, test } from '@jest/globals';
import { FAULT_KINDS } from './faults.js';
import { readOptions } from './options.js';

describe('the options of a torture run', () => {
  test('choose from all kinds of faults, or from the named ones', () => {
    expect(readOptions([])?.faults).toEqual(FAULT_KINDS);
    expect(readOptions(['--faults', 'cut,fill'])?.faults).toEqual(['cut', 'fill']);
  });

  test('name the history of an earlier run', () => {
    expect(readOptions(['--check', '/tmp/run'])?.check).toBe('/tmp/run');
    expect(readOptions([])?.check).toBeNull();
  });

  test('name a deployment with the keys of its tenants', () => {
    const options = readOptions(['--base-url', 'https://calls.example.com', '--key', 'a', '--key', 'b']);
    expect(options?.target).toMatchObject({ baseUrl: 'https://calls.example.com', keys: ['a', 'b'] });
  });

  test('give the time of the faults in minutes or in seconds', () => {
    expect(readOptions([])?.minutes).toBe(10);
    expect(readOptions(['--minutes', '2'])?.minutes).toBe(2);
    expect(readOptions(['--seconds', '90'])?.minutes).toBe(1.5);
  });

  test('ask for help', () => {
    expect([readOptions(['--help']), readOptions(['-h'])]).toEqual([null, null]);
  });

  test.each([
    [['--seconds', '0'], '--seconds must be above 0 and at most 86400, not 0'],
    [['--seconds', '60', '--minutes', '1'], '--minutes and --seconds exclude each other'],
    [['--minutes', 'abc'], '--minutes must be above 0'],
    [['--seed=-1'], '--seed must be a whole number'],
    [['--faults', 'cut,fire'], '--faults has no kind "fire". There are kill-app'],
    [['--base-url', 'https://calls.example.com'], '--base-url needs --key'],
    [['--base-url', 'calls', '--key', 'a'], '--base-url must be a URL that begins with http:// or https://, not calls'],
    [['--base-url', 'http://calls', '--key', 'a', '--signaling-url', 'http://calls'], '--signaling-url must be a URL'],
    [['--base-url', 'http://calls', '--key', 'a', '--receiver-url', '8099'], '--receiver-url must be a URL'],
    [['--base-url', 'http://calls', '--key', 'a', '--faults', 'cut'], '--faults is for a fleet on this machine'],
    [['--key', 'a'], '--key needs --base-url'],
    [['--seed', ''], '--seed must be a whole number'],
    [['--check'], "Option '--check <value>' argument missing"],
    [['10'], "Unexpected argument '10'"],
    [['--fault', 'cut'], "Unknown option '--fault'"],
  ])('%j are refused with one sentence', (args, sentence) => {
    expect(() => readOptions(args)).toThrow(sentence);
  });
});
