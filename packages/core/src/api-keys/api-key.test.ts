import { describe, expect, test } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import {
  API_KEY_PATTERN,
  API_KEY_TYPES,
  formatApiKey,
  formatLoginCode,
  hashApiKey,
  keyProblem,
  mayUse,
  parseApiKey,
  SCOPES,
} from './api-key.js';

describe('API keys', () => {
  test.each(API_KEY_TYPES)('are recognised as %s by their format', (type) => {
    for (let round = 0; round < 200; round++) {
      const key = formatApiKey(type, randomBytes(32));
      expect(key).toMatch(type === 'secret' ? /^rtc_sk_[0-9A-Za-z]{49}$/ : /^rtc_pk_[0-9A-Za-z]{49}$/);
      expect(parseApiKey(key)).toBe(type);
      expect(`key=${key};`.match(API_KEY_PATTERN)).toEqual([key]);
    }
  });

  test('have the same length for the extremes of the random part', () => {
    for (const bytes of [new Uint8Array(32), new Uint8Array(32).fill(255)]) {
      expect(parseApiKey(formatApiKey('secret', bytes))).toBe('secret');
    }
  });

  test('are rejected by their checksum with any single wrong, missing or added character', () => {
    const key = formatApiKey('secret', randomBytes(32));
    for (let at = 0; at < key.length; at++) {
      const other = key[at] === 'x' ? 'y' : 'x';
      expect(parseApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBeNull();
    }
    expect(parseApiKey(key.slice(0, -1))).toBeNull();
    expect(parseApiKey(`${key}0`)).toBeNull();
    expect(parseApiKey('')).toBeNull();
  });

  test('have problems that are told apart, and never quoted', () => {
    const key = formatApiKey('secret', randomBytes(32));
    const checksum = 'its checksum does not match: a character is wrong or missing';
    for (let at = 'rtc_sk_'.length; at < key.length; at++) {
      expect(keyProblem(key.slice(0, at) + (key[at] === 'x' ? 'y' : 'x') + key.slice(at + 1))).toBe(checksum);
    }
    expect(keyProblem(key.slice(0, -1))).toBe('it has 48 characters after rtc_sk_ instead of 49');
    expect(keyProblem(`${key}0`)).toBe('it has 50 characters after rtc_sk_ instead of 49');
    expect(keyProblem(key.replace('rtc_sk_', 'rtc-sk-'))).toBe('it begins neither with rtc_sk_ nor with rtc_pk_');
    expect(keyProblem(key)).toBeNull();
    expect(keyProblem(formatLoginCode(randomBytes(32)))).toContain('the code of a login link');
  });

  test('are stored as the SHA-256 of the whole key', () => {
    expect(hashApiKey('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });

  test('of the type publishable grant no scope, whatever scopes they were given', () => {
    for (const scope of SCOPES) {
      expect(mayUse({ keyType: 'publishable', scopes: [...SCOPES] }, scope)).toBe(false);
      expect(mayUse({ keyType: 'secret', scopes: [scope] }, scope)).toBe(true);
      expect(mayUse({ keyType: 'secret', scopes: SCOPES.filter((other) => other !== scope) }, scope)).toBe(false);
    }
  });
});
