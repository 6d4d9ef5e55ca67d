import { expect, test } from '@jest/globals';
import { Beginnings } from './beginnings.js';

const at = (second: number) => new Date(Date.UTC(2030, 0, 1, 0, 0, second));
const FLOOR = at(30);
const backlog = (endpointId: string, firstSince: Date | null, retrySince: Date | null = null) => ({
  endpointId,
  firstSince,
  retrySince,
});

function withFloor(): Beginnings {
  const beginnings = new Beginnings();
  beginnings.noteFloor(FLOOR);
  return beginnings;
}

test('without a floor, claims read deliveries of any age', () => {
  const beginnings = new Beginnings();
  beginnings.noteBacklogs([backlog('a', at(1))], true);
  expect([beginnings.of('a', 'first'), beginnings.of('b', 'retry')]).toEqual([null, null]);
});

test('claims begin at the backlog of their endpoint and kind, otherwise at the floor', () => {
  const beginnings = withFloor();
  beginnings.noteBacklogs([backlog('a', at(1)), backlog('b', null, at(2))], true);
  expect(['a', 'b', 'c'].map((id) => beginnings.of(id, 'first'))).toEqual([at(1), FLOOR, FLOOR]);
  expect(['a', 'b', 'c'].map((id) => beginnings.of(id, 'retry'))).toEqual([FLOOR, at(2), FLOOR]);
});

test('a backlog counts from the page that lists it until a complete pass misses it', () => {
  const beginnings = withFloor();
  beginnings.noteBacklogs([backlog('a', at(1))], false);
  expect(beginnings.of('a', 'first')).toEqual(at(1));
  beginnings.noteBacklogs([], true);
  beginnings.noteBacklogs([backlog('b', at(2))], false);
  expect([beginnings.of('a', 'first'), beginnings.of('b', 'first')]).toEqual([at(1), at(2)]);
  beginnings.noteBacklogs([], true);
  expect([beginnings.of('a', 'first'), beginnings.of('b', 'first')]).toEqual([FLOOR, at(2)]);
});

test('with more backlogs than are remembered, claims of unknown endpoints read deliveries of any age', () => {
  const beginnings = withFloor();
  const many = Array.from({ length: 20_001 }, (_, n) => backlog(`many ${n}`, at(1)));
  beginnings.noteBacklogs(many, true);
  expect([beginnings.of('many 1', 'first'), beginnings.of('other', 'first')]).toEqual([at(1), null]);
  beginnings.noteBacklogs([], true);
  expect(beginnings.of('other', 'first')).toEqual(FLOOR);
});
