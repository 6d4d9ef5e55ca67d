import type { StoredRecordingFile } from '@callplane/core';
import type { RecordingAttendee, RecordingSpan, RecordingToProcess } from '@callplane/db';
import type { Attendance, Person, Picture } from './scenes.js';
import { without, type Interval, type Talk } from './speakers.js';

type Recorded = Pick<RecordingToProcess, 'startedAt' | 'endedAt' | 'layout' | 'participantId'>;

/** Who was there and what they showed, of the rows and files of a recording; without speakers. */
export function attendanceOf(
  recording: Recorded,
  attendees: readonly RecordingAttendee[],
  spans: readonly RecordingSpan[],
  tracks: readonly StoredRecordingFile[],
): Omit<Attendance, 'speakers'> {
  const people = new Map<string, Person & { stays: Interval[] }>();
  for (const { participantId, name, startedAt, endedAt } of attendees) {
    const person = people.get(participantId) ?? { participantId, name, stays: [] };
    person.stays.push(intervalOf(recording, startedAt, endedAt));
    people.set(participantId, person);
  }
  const pictures = tracks
    .filter(({ width }) => width !== null)
    .map((track): Picture => {
      const participantId = ownerOf(track);
      if (!people.has(participantId)) people.set(participantId, { participantId, name: '', stays: [] });
      const [isScreen, mutes] = [track.source === 'screen', mutesOf(recording, spans, track)];
      return { ...extentOf(track), fileId: track.id, participantId, isScreen, mutes };
    });
  const durationMs = recording.endedAt.getTime() - recording.startedAt.getTime();
  return { durationMs, layout: recording.layout, people: [...people.values()], pictures };
}

/** When somebody spoke into a track. Its file has no time in which it was muted: speech seems to continue there. */
export function talksOf(
  recording: Recorded,
  spans: readonly RecordingSpan[],
  track: StoredRecordingFile,
  speech: readonly Interval[],
): Talk[] {
  const mutes = mutesOf(recording, spans, track);
  const participantId = ownerOf(track);
  return speech.flatMap(({ fromMs, toMs }) =>
    without({ fromMs: fromMs + track.startMs, toMs: toMs + track.startMs }, mutes).map((talk) => ({
      ...talk,
      participantId,
    })),
  );
}

/** A track that no row names is of a person of its own. */
const ownerOf = ({ participantId, id }: StoredRecordingFile): string => participantId ?? id;

export const extentOf = ({ startMs, durationMs }: Pick<StoredRecordingFile, 'startMs' | 'durationMs'>): Interval => ({
  fromMs: startMs,
  toMs: startMs + durationMs,
});

function mutesOf(
  recording: Recorded,
  spans: readonly RecordingSpan[],
  { participantId, trackId }: StoredRecordingFile,
): Interval[] {
  return spans
    .filter((span) => span.muted && span.participantId === participantId && span.trackId === trackId)
    .map(({ startedAt, endedAt }) => intervalOf(recording, startedAt, endedAt));
}

function intervalOf(recording: Recorded, from: Date, to: Date | null): Interval {
  const sinceBegin = (time: Date) => time.getTime() - recording.startedAt.getTime();
  return { fromMs: sinceBegin(from), toMs: sinceBegin(to ?? recording.endedAt) };
}
