import type { JsonObject, MediaLine, RequestLine } from '../history.js';
import {
  faultsOf,
  finalObjects,
  groupBy,
  hasSettled,
  isObject,
  isSuccess,
  numberIn,
  requestEvidence,
  roomCreations,
  textIn,
  type Found,
  type History,
} from './facts.js';
import { Tally, type Finding } from './finding.js';

/** A time of the wall clock, in milliseconds. */
interface Span {
  from: number;
  until: number;
}

interface Heard extends Span {
  soundMs: number;
}

/** Packets between two samples of a listener while somebody speaks: 50 a second are sent. */
const HEARD_PACKETS = 5;
/** Sound in a packet, in milliseconds. A busy sender sends fewer packets, and its file is as much shorter. */
const PACKET_MS = 20;
/** A sample of a busy client can be late: longer ones say nothing. */
const SAMPLE_MS_MAX = 2000;
/** Media that may be missing where Janus begins to record, and by the distance of samples, in milliseconds. */
const MISSING_MS_MAX = 4000;
/** A killed Janus loses what it has not written: 4 KiB. */
const NOT_WRITTEN_MS = 2000;
const BEGINS_WITHIN_MS = 30_000;
/** Janus stops recording within this time. */
const STOPS_WITHIN_MS = 2000;

export function checkRecordings(history: History): Finding[] {
  const ends = new Tally('C1', 'nothing was recorded');
  const whole = new Tally('C2', 'no recording of tracks was completed');
  const asked = new Tally('C3', 'nothing was recorded');
  const found = new Map(finalObjects(history, 'rec_').map((each) => [each.id, each]));
  accepted(history, found, ends);
  for (const recording of found.values()) {
    ended(history, recording, ends);
    complete(history, recording, whole);
  }
  wanted(history, [...found.values()], asked);
  return [ends, whole, asked].map((tally) => tally.finding());
}

const starts = ({ requests }: History): RequestLine[] =>
  requests.filter(({ method, path }) => method === 'POST' && /^\/v1\/rooms\/\w+\/recordings$/.test(path));

/** Every recording that was answered with 202 is there at the end. */
function accepted(history: History, found: ReadonlyMap<string, Found>, ends: Tally): void {
  for (const request of starts(history).filter(isSuccess)) {
    const id = textIn(request.answer, 'id') ?? '';
    ends.case(found.has(id), `${id} was accepted and is not there at the end.`, requestEvidence(request));
  }
}

function ended(history: History, { id, object, request }: Found, ends: Tally): void {
  const { status, lastError } = object;
  if (!hasSettled(history) && status !== 'completed' && status !== 'failed') return;
  const isOver = status === 'completed' || (status === 'failed' && isObject(lastError));
  ends.case(isOver, `${id} is ${String(status)} at the end, or failed without a reason.`, requestEvidence(request));
}

/** A room has no more recordings than were asked for, and none that ends after it. */
function wanted(history: History, found: readonly Found[], asked: Tally): void {
  const rooms = roomCreations(history);
  const endings = history.requests.filter((each) => each.method === 'DELETE' && isSuccess(each));
  for (const [roomId, recordings] of groupBy(found, ({ object }) => textIn(object, 'roomId'))) {
    const requests = starts(history).filter(({ path }) => path.includes(`/${roomId}/`));
    const keys = new Set(requests.map(({ idempotencyKey, id }) => idempotencyKey ?? id));
    const creation = rooms.get(roomId);
    const count = keys.size + (isObject(creation?.body) && isObject(creation.body['record']) ? 1 : 0);
    const evidence = [...requests, ...recordings.map(({ request }) => request)].map(requestEvidence);
    asked.case(recordings.length <= count, `${roomId} has ${recordings.length} recordings of ${count}.`, ...evidence);
    const ending = endings.find(({ path }) => path === `/v1/rooms/${roomId}`);
    if (ending === undefined) continue;
    for (const recording of recordings) {
      const sentence = `${recording.id} was recorded after the end of ${roomId}.`;
      const until = wallAtEnd(ending) + STOPS_WITHIN_MS;
      const isInTime = filesOf(recording.object).every((file) => file.until <= until);
      asked.case(isInTime, sentence, requestEvidence(ending), requestEvidence(recording.request));
    }
  }
}

/** Media that somebody has heard in the room is in the files. */
function complete(history: History, { id, object, request }: Found, whole: Tally): void {
  const { status, mode, roomId, endedAt } = object;
  if (status !== 'completed' || mode !== 'tracks') return;
  const files = filesOf(object);
  const heard = heardIn(history.media.filter((line) => line.roomId === roomId));
  const wholeSpan = { from: timeIn(object, 'startedAt'), until: Date.parse(String(endedAt)) };
  const first = Math.min(...files.map(({ from }) => from));
  const late = faultsOf(history);
  const offset = wallOffset(history);
  const [from, until] = [wholeSpan.from - offset, wholeSpan.until - offset];
  // Nobody tells Janus to record while the agent or PostgreSQL is away.
  const isCalm = !late.overlap(from - late.recoveryMs, until);
  const begin = isCalm ? wholeSpan.from : first;
  const excused = excuses(history, files, offset);
  const covered = new Set(files.flatMap((file) => coveredBy(file, heard)));
  const missing = heard
    .filter((span) => span.from >= begin && span.until <= wholeSpan.until)
    .filter((span) => !excused.some(({ from, until }) => from <= span.from && until >= span.until))
    .filter((span) => !covered.has(span));
  const missingMs = missing.reduce((sum, span) => sum + span.until - span.from, 0);
  const sentence = `${Math.round(missingMs)} ms that were heard are not in ${id}.`;
  // Each further fault of a Janus ends and begins files, and a sample on either side may be missing.
  const maxMs = MISSING_MS_MAX + Math.max(0, excused.length - 1) * SAMPLE_MS_MAX;
  whole.case(missingMs <= maxMs, sentence, requestEvidence(request));
}

/** The times that the sound of a file fills: as long as they last, or as much as was heard in them. */
function coveredBy(file: Span, heard: readonly Heard[]): Heard[] {
  let [left, at] = [file.until - file.from, file.from];
  return heard.filter((span) => {
    if (span.from < file.from) return false;
    left -= Math.max(0, span.from - at);
    const isCovered = left > 0;
    left -= Math.min(span.soundMs, span.until - span.from);
    at = span.until;
    return isCovered;
  });
}

/** The times in which a listener got media, in their order. */
function heardIn(lines: readonly MediaLine[]): Heard[] {
  const spans = [...groupBy(lines, ({ call }) => call).values()].flatMap((samples) =>
    samples.flatMap((line, index) => {
      const before = samples[index - 1];
      if (before === undefined) return [];
      const packets = line.packetsReceived - before.packetsReceived;
      const span = { from: Date.parse(before.wall), until: Date.parse(line.wall), soundMs: packets * PACKET_MS };
      return packets >= HEARD_PACKETS && span.until - span.from <= SAMPLE_MS_MAX ? [span] : [];
    }),
  );
  return spans.sort((a, b) => a.from - b.from);
}

/**
 * From just before a fault of a Janus until its room is recorded again, there or at another one. Agents need PostgreSQL
 * for that, and may be away themselves.
 */
function excuses({ nemesis }: History, files: readonly Span[], offset: number): Span[] {
  const begins = nemesis.filter(({ what }) => what === 'begin');
  const ends = new Map(nemesis.filter(({ what }) => what === 'end').map(({ fault, atMs }) => [fault, atMs]));
  const endOf = ({ fault }: { fault: string }): number => ends.get(fault) ?? Infinity;
  return begins
    .filter(({ target }) => target.includes('janus'))
    .map((fault) => {
      const near = begins.filter(({ atMs }) => atMs <= endOf(fault) + BEGINS_WITHIN_MS);
      const latest = Math.max(endOf(fault), ...near.map(endOf)) + BEGINS_WITHIN_MS;
      const again = files.filter((file) => file.from > fault.atMs + offset).map((file) => file.from);
      return { from: fault.atMs + offset - NOT_WRITTEN_MS, until: Math.min(latest + offset, ...again) };
    });
}

const timeIn = (object: JsonObject, name: string): number => Date.parse(String(object[name]));

function filesOf(recording: JsonObject): Span[] {
  const files = Array.isArray(recording['files']) ? recording['files'] : [];
  return files.map((file: unknown) => {
    const from = timeIn(recording, 'startedAt') + (numberIn(file, 'startMs') ?? 0);
    return { from, until: from + (numberIn(file, 'durationMs') ?? 0) };
  });
}

/** By how much the wall clock is ahead of the times of the history. */
const wallOffset = ({ run }: History): number => Date.parse(run.wall) - run.atMs;

const wallAtEnd = ({ wall, startMs, endMs }: RequestLine): number => Date.parse(wall) + endMs - startMs;
