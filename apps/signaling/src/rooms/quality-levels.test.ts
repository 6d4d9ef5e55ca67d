import { describe, expect, test } from '@jest/globals';
import { parseQuality, QualityLevels } from './quality-levels.js';

const entry = (participantId: string, level: string) => ({ participantId, level });

describe('levels of quality', () => {
  test('are told once per change, to the members and to other instances', () => {
    const levels = new QualityLevels();
    levels.report('a', 'good');
    levels.report('b', 'poor');
    levels.report('b', 'poor');
    expect(levels.takeChanged()).toEqual([entry('a', 'good'), entry('b', 'poor')]);
    expect(levels.takeReported()).toEqual({ quality: [entry('a', 'good'), entry('b', 'poor')] });
    expect([levels.takeChanged(), levels.takeReported()]).toEqual([[], null]);
    levels.report('b', 'fair');
    expect(levels.takeChanged()).toEqual([entry('b', 'fair')]);
    expect(levels.impaired()).toEqual([entry('b', 'fair')]);
  });

  test('of other instances are not passed on, and those of participants who left are forgotten', () => {
    const levels = new QualityLevels();
    levels.learn([{ participantId: 'a', level: 'lost' }]);
    expect(levels.takeReported()).toBeNull();
    levels.delete('a');
    expect([levels.takeChanged(), levels.impaired()]).toEqual([[], []]);
  });

  test.each([
    [null, null],
    ['text', null],
    [{ from: 'part_1', to: null, text: '{}' }, null],
    [{ quality: 'good' }, null],
    [
      { quality: [entry('a', 'good'), entry('b', 'great'), null, { participantId: 1, level: 'good' }] },
      [entry('a', 'good')],
    ],
  ])('are read from %j', (message, entries) => {
    expect(parseQuality(message)).toEqual(entries);
  });
});
