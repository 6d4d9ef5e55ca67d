import { describe, expect, test } from '@jest/globals';
import { joinedAt, leftAt } from './participant.js';

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute));
const issued = { createdAt: at(0), connectedAt: null, leftAt: null, tokenExpiresAt: at(10) };

describe('presence', () => {
  test('one that has not connected joined when its token was issued, and leaves when it expires', () => {
    expect(joinedAt(issued)).toEqual(at(0));
    expect(leftAt(issued, at(9))).toBeNull();
    expect(leftAt(issued, at(10))).toEqual(at(10));
    expect(leftAt(issued, at(60))).toEqual(at(10));
  });

  test('one that connected joined then, and outlives its token', () => {
    const connected = { ...issued, connectedAt: at(5) };
    expect(joinedAt(connected)).toEqual(at(5));
    expect(leftAt(connected, at(60))).toBeNull();
    expect(leftAt({ ...connected, leftAt: at(30) }, at(60))).toEqual(at(30));
  });

  test('one that was removed before it connected left at its removal', () => {
    expect(leftAt({ ...issued, leftAt: at(3) }, at(60))).toEqual(at(3));
  });
});
