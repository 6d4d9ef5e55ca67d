import { describe, expect, test } from '@jest/globals';
import { joinedAt, leftAt } from './participant.js';

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute));
const issued = { createdAt: at(0), connectedAt: null, leftAt: null, tokenExpiresAt: at(10) };

describe('presence of a participant', () => {
  test('starts when the token was issued and ends when it expires, without a connection', () => {
    expect(joinedAt(issued)).toEqual(at(0));
    expect(leftAt(issued, at(9))).toBeNull();
    expect(leftAt(issued, at(10))).toEqual(at(10));
    expect(leftAt(issued, at(60))).toEqual(at(10));
  });

  test('starts with the connection, and outlives the token', () => {
    const connected = { ...issued, connectedAt: at(5) };
    expect(joinedAt(connected)).toEqual(at(5));
    expect(leftAt(connected, at(60))).toBeNull();
    expect(leftAt({ ...connected, leftAt: at(30) }, at(60))).toEqual(at(30));
  });

  test('ends with a removal before the first connection', () => {
    expect(leftAt({ ...issued, leftAt: at(3) }, at(60))).toEqual(at(3));
  });
});
