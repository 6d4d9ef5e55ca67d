import { describe, expect, test } from '@jest/globals';
import type { RecordingSpan } from '@callplane/db';
import { planParts } from './parts.js';

const BEGIN = Date.parse('2030-01-01T12:00:00.000Z');
const at = (ms: number) => new Date(BEGIN + ms);
const RECORDING = { startedAt: at(0), endedAt: at(60_000), participantId: null, audioOnly: false };
const CAPTURE = { feedId: 'sess_1-1-1', kind: 'video' as const, section: 1 };

const span = (more: Partial<RecordingSpan>): RecordingSpan => ({
  participantId: 'part_ada',
  trackId: 'camera',
  kind: 'video',
  source: 'camera',
  feedId: 'sess_1-1-1',
  mid: '1',
  muted: false,
  startedAt: at(500),
  endedAt: null,
  ...more,
});

describe('the parts of a capture', () => {
  test('are one for a track, mutes included, from the begin of the capture on', () => {
    const spans = [span({ endedAt: at(900) }), span({ startedAt: at(900), muted: true })];
    expect(planParts(RECORDING, CAPTURE, spans)).toEqual([
      { track: { participantId: 'part_ada', trackId: 'camera', source: 'camera' }, fromMs: 0, toMs: 60_000 },
    ]);
  });

  test('are one for each track that the section has carried', () => {
    const spans = [span({ endedAt: at(9000) }), span({ trackId: 'screen', source: 'screen', startedAt: at(10_000) })];
    expect(
      planParts(RECORDING, CAPTURE, spans).map(({ track, fromMs, toMs }) => [track.trackId, fromMs, toMs]),
    ).toEqual([
      ['camera', 0, 10_000],
      ['screen', 10_000, 60_000],
    ]);
  });

  test('leave out other sections, feeds and kinds', () => {
    const others = [span({ mid: '2', trackId: 'screen' }), span({ feedId: 'sess_2-1-1', trackId: 'b' })];
    const parts = planParts(RECORDING, CAPTURE, [
      ...others,
      span({ mid: '1', kind: 'audio', trackId: 'mic' }),
      span({}),
    ]);
    expect(parts.map(({ track }) => track.trackId)).toEqual(['camera']);
  });

  test('find the track of a client that names its sections in its own way', () => {
    expect(planParts(RECORDING, CAPTURE, [span({ mid: 'video' })]).map(({ track }) => track.trackId)).toEqual([
      'camera',
    ]);
  });

  test('belong to the recorded participant, and to sound if pictures are left out', () => {
    const others = { ...RECORDING, participantId: 'part_bob' };
    expect(planParts(others, CAPTURE, [span({})])).toEqual([]);
    expect(planParts({ ...RECORDING, participantId: 'part_ada' }, CAPTURE, [span({})])).toHaveLength(1);
    expect(planParts({ ...RECORDING, audioOnly: true }, CAPTURE, [span({})])).toEqual([]);
  });

  test('are one without a name if no row names a track, unless one participant is recorded', () => {
    expect(planParts(RECORDING, CAPTURE, [])).toMatchObject([{ track: { trackId: null }, fromMs: 0, toMs: 60_000 }]);
    expect(planParts({ ...RECORDING, participantId: 'part_ada' }, CAPTURE, [])).toEqual([]);
  });
});
