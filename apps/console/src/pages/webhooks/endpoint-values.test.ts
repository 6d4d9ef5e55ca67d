import { expect, test } from '@jest/globals';
import { changedMeanwhile, differencesOf, EMPTY, fieldsOf } from './endpoint-values.js';

const opened = { ...EMPTY, url: 'https://a.example/', all: false, events: ['room.created', 'room.ended'] as const };

test('a form sends only the fields that it changes', () => {
  const values = {
    ...opened,
    url: ' https://b.example/ ',
    maxPerSecond: '5',
    events: ['room.ended', 'room.created'] as const,
  };
  expect(differencesOf(fieldsOf(opened), fieldsOf(values))).toEqual({ url: 'https://b.example/', maxPerSecond: 5 });
  expect(differencesOf(fieldsOf(opened), fieldsOf(opened))).toEqual({});
  expect(differencesOf(fieldsOf({ ...opened, description: 'Shop' }), fieldsOf(opened))).toEqual({ description: null });
});

test('a form says which fields another session has changed, and which of them it replaces', () => {
  const [before, current] = [fieldsOf(opened), fieldsOf({ ...opened, inOrder: true, url: 'https://c.example/' })];
  expect(changedMeanwhile(before, before, { url: 'https://b.example/' })).toBeUndefined();
  expect(changedMeanwhile(before, current, { maxPerSecond: 5 })).toMatch(/URL, Order\. The form shows the new values/);
  expect(changedMeanwhile(before, current, { url: 'https://b.example/' })).toMatch(/replaces the new value of: URL\.$/);
});
