import { expect, test } from '@jest/globals';
import { changesOf } from './changes-of.js';

test('a form sends only the fields that it changes', () => {
  const opened = { description: 'Shop' as string | null, events: ['room.created', 'room.ended'], maxPerSecond: 1 };
  const events = ['room.ended', 'room.created'];
  expect(changesOf(opened, { events, maxPerSecond: 5 })).toEqual({ maxPerSecond: 5 });
  expect(changesOf(opened, opened)).toEqual({});
  expect(changesOf(opened, { description: null })).toEqual({ description: null });
});
