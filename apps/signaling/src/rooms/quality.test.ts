import { beforeEach, describe, expect, test } from '@jest/globals';
import type { RoomChange, RoomMember } from './changes.js';
import { RoomQuality, type QualityEntry } from './quality.js';
import type { Room } from './room.js';

const entry = (participantId: string, level: string) => ({ participantId, level }) as QualityEntry;

describe('levels of quality', () => {
  let told: QualityEntry[][];
  let reported: unknown[];
  let quality: RoomQuality;
  const member = {
    participantId: 'eve',
    sendText: (text: string) => told.push(JSON.parse(text).participants),
  } as unknown as RoomMember;

  beforeEach(() => {
    [told, reported] = [[], []];
    const room = { members: [member], state: { rosterPaged: false } } as unknown as Room;
    quality = new RoomQuality(room, (kind, report) => reported.push([kind, report]));
  });

  test('are told once per change, to the members and to other instances', () => {
    quality.note('a', 'good');
    quality.note('b', 'poor');
    quality.note('b', 'poor');
    quality.eachSecond();
    quality.eachSecond();
    const entries = [entry('a', 'good'), entry('b', 'poor')];
    expect([told, reported]).toEqual([[entries], [['quality', entries]]]);
    quality.note('b', 'fair');
    quality.eachSecond();
    expect(told.at(-1)).toEqual([entry('b', 'fair')]);
    quality.welcome(member);
    expect(told.at(-1)).toEqual([entry('b', 'fair')]);
    expect(told).toHaveLength(3);
  });

  test('below good of its members are reported again once a session has come, perhaps to another instance', () => {
    quality.note('eve', 'poor');
    quality.receive([entry('a', 'poor')]);
    quality.eachSecond();
    quality.apply([{ before: null, after: { participantId: 'bob', instanceId: 'two' }, gone: null } as RoomChange]);
    quality.eachSecond();
    quality.eachSecond();
    expect(reported).toEqual(Array.from({ length: 2 }, () => ['quality', [entry('eve', 'poor')]]));
  });

  test('of other instances are not passed on, and levels of participants who left are forgotten', () => {
    quality.receive([entry('a', 'lost'), entry('b', 'poor')]);
    quality.apply([{ before: { participantId: 'a' }, after: null, gone: 'left' } as RoomChange]);
    quality.eachSecond();
    expect([told, reported]).toEqual([[[entry('b', 'poor')]], []]);
  });
});
