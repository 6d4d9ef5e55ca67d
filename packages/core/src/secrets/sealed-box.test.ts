import { describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { open, parseMasterKeys, seal } from './sealed-box.js';

const entry = (id: string) => `${id}:${randomBytes(32).toString('base64')}`;

describe('sealed secrets', () => {
  const old = entry('k1');
  const keys = parseMasterKeys([old]);

  test('open to the original text, and differ each time the same text is sealed', () => {
    const box = seal(keys, 'geheim äöü', 'signing-key:a');
    expect(box).toMatch(/^s1\.k1\.[\w-]+$/);
    expect(open(keys, box, 'signing-key:a')).toBe('geheim äöü');
    expect(seal(keys, 'geheim äöü', 'signing-key:a')).not.toBe(box);
  });

  test('are sealed with a newly added master key, and still open with the old one', () => {
    const box = seal(keys, 'old', 'c');
    const both = parseMasterKeys([entry('k2'), old]);
    expect(open(both, box, 'c')).toBe('old');
    expect(seal(both, 'new', 'c')).toMatch(/^s1\.k2\./);
    expect(() => open(keys, seal(both, 'new', 'c'), 'c')).toThrow('master key "k2" is not configured');
  });

  test('do not open after they were altered or moved to another context', () => {
    const box = seal(keys, 'secret', 'c');
    expect(() => open(keys, box, 'd')).toThrow();
    const at = box.length - 5;
    expect(() => open(keys, box.slice(0, at) + (box[at] === 'A' ? 'B' : 'A') + box.slice(at + 1), 'c')).toThrow();
    expect(() => open(keys, 'plain', 'c')).toThrow('not a sealed secret');
  });

  test('reject a malformed list of master keys without showing it', () => {
    expect(() => parseMasterKeys([])).toThrow('at least one');
    expect(() => parseMasterKeys([old, 'k2:c2hvcnQ='])).toThrow(
      /^entry 2 is not "<id>:<base64 of 32 bytes>" \(openssl rand -base64 32\)$/,
    );
    expect(() => parseMasterKeys([old, old])).toThrow('entry 2 repeats');
  });
});
