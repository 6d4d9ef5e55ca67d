import { expect, test } from '@jest/globals';
import { differencesOf, EMPTY, type EndpointFields } from './endpoint-values.js';

test('a form sends only the fields that it changes', () => {
  const opened: EndpointFields = { ...EMPTY, url: 'https://a.example/', events: ['room.created', 'room.ended'] };
  const values: EndpointFields = { ...opened, maxPerSecond: 5, events: ['room.ended', 'room.created'] };
  expect(differencesOf(opened, values)).toEqual({ maxPerSecond: 5 });
  expect(differencesOf(opened, opened)).toEqual({});
  expect(differencesOf({ ...opened, description: 'Shop' }, opened)).toEqual({ description: null });
});
