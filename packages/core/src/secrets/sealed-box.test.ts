import { describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { open, parseMasterKeys, seal } from './sealed-box.js';

const entry = (id: string) => `${id}:${randomBytes(32).toString('base64')}`;

describe('sealed secrets', () => {
  const old = entry('k1');
  const keys = parseMasterKeys([old]);

  test('open to what was sealed, and two boxes of one secret differ', () => {
    const box = seal(keys, 'geheim äöü', 'signing-key:a');
    expect(box).toMatch(/^s1\.k1\.[\w-]+$/);
    expect(open(keys, box, 'signing-key:a')).toBe('geheim äöü');
    expect(seal(keys, 'geheim äöü', 'signing-key:a')).not.toBe(box);
  });

  test('a second master key seals from then on, and what the first one sealed still opens', () => {
    const box = seal(keys, 'old', 'c');
    const both = parseMasterKeys([entry('k2'), old]);
    expect(open(both, box, 'c')).toBe('old');
    expect(seal(both, 'new', 'c')).toMatch(/^s1\.k2\./);
    expect(() => open(keys, seal(both, 'new', 'c'), 'c')).toThrow('master key "k2" is not configured');
  });

  test('a box that was altered or moved to another context does not open', () => {
    const box = seal(keys, 'secret', 'c');
    expect(() => open(keys, box, 'd')).toThrow();
    const at = box.length - 5;
    expect(() => open(keys, box.slice(0, at) + (box[at] === 'A' ? 'B' : 'A') + box.slice(at + 1), 'c')).toThrow();
    expect(() => open(keys, 'plain', 'c')).toThrow('not a sealed secret');
  });

  test('a malformed list of keys is refused without showing it', () => {
    expect(() => parseMasterKeys([])).toThrow('at least one');
    expect(() => parseMasterKeys([old, 'k2:c2hvcnQ='])).toThrow(
      /^entry 2 is not "<id>:<base64 of 32 bytes>" \(openssl rand -base64 32\)$/,
    );
    expect(() => parseMasterKeys([old, old])).toThrow('entry 2 repeats');
  });
});
