import type { FrameLine, MediaLine, RequestLine } from '../history.js';
import {
  faultsOf,
  finalEvents,
  finalObjects,
  frameEvidence,
  groupBy,
  isSuccess,
  namedBy,
  objectsWithId,
  requestEvidence,
  textIn,
  type EventFact,
  type History,
} from './facts.js';
import { Tally, type Evidence, type Finding } from './finding.js';

/** A key that was revoked is refused after this time, in milliseconds. */
const REVOKED_WITHIN_MS = 5000;
/** Packets on their way when an operation completes arrive within this time. */
const ON_THEIR_WAY_MS = 1000;

export function checkRooms(history: History): Finding[] {
  const capacity = new Tally('R1', 'no room has a `participant.joined` event');
  const ends = new Tally('R2', 'no room with joins or sessions was ended');
  const removals = new Tally('R3', 'nobody tried to join after a removal, and no session of a removed one is read');
  const reports = new Tally('R4', 'no room has a `participant.joined` event');
  const single = new Tally('R5', 'no room has a `participant.joined` event');
  const places = placesOf(history);
  const events = groupBy(finalEvents(history).values(), ({ roomId }) => roomId);
  for (const [roomId, ofRoom] of events) {
    const inOrder = ofRoom.sort((a, b) => (a.sequence ?? 0) - (b.sequence ?? 0));
    replaySessions(inOrder, places.get(roomId) ?? Infinity, { capacity, reports, single, ends, removals });
  }
  lateJoins(history, ends, removals);
  laterJoins(history, single);
  sessionsLeft(history, ends, removals);
  nothingRelayed(history, ends, removals);
  return [capacity, ends, removals, reports, single, revokedKeys(history)].map((tally) => tally.finding());
}

function revokedKeys({ marks, requests }: History): Tally {
  const tally = new Tally('R6', 'no key was revoked');
  for (const { mark, atMs, n, detail } of marks) {
    if (mark !== 'key revoked') continue;
    const sentence = 'A key is accepted more than 5 s after its revocation.';
    const evidence = { file: 'marks' as const, n, says: `revoked at ${Math.round(atMs)} ms` };
    for (const request of requests) {
      if (request.client !== detail['client'] || request.startMs < atMs + REVOKED_WITHIN_MS) continue;
      if (request.status !== null) tally.case(!isSuccess(request), sentence, evidence, requestEvidence(request));
    }
  }
  return tally;
}

function placesOf({ requests }: History): Map<string, number> {
  const places = new Map<string, number>();
  for (const { answer } of requests.filter(isSuccess)) {
    for (const { id, maxParticipants } of objectsWithId(answer)) {
      if (typeof maxParticipants !== 'number') continue;
      places.set(String(id), Math.max(places.get(String(id)) ?? 0, maxParticipants));
    }
  }
  return places;
}

interface Tallies {
  capacity: Tally;
  reports: Tally;
  single: Tally;
  ends: Tally;
  removals: Tally;
}

/** Follows the sessions of a room through its events, which are in the order of their commits. */
function replaySessions(events: readonly EventFact[], places: number, tallies: Tallies): void {
  const live = new Map<string, EventFact>();
  const known = new Set<string>();
  /** The events that say of participants that they were removed. */
  const removed = new Map<string | null, EventFact>();
  let ended: EventFact | null = null;
  const proof = (...facts: (EventFact | null | undefined)[]): Evidence[] =>
    facts.flatMap((fact) =>
      fact == null ? [] : [{ ...fact.from, says: `${fact.type} ${fact.sessionId}, sequence ${fact.sequence}` }],
    );
  for (const event of events) {
    const { type, sessionId, participantId } = event;
    if (type === 'room.ended') ended = event;
    if (sessionId === null) continue;
    if (type === 'participant.joined') {
      const own = [...live.values()].find((other) => other.participantId === participantId);
      tallies.single.case(own === undefined, `${participantId} has two live sessions.`, ...proof(own, event));
      tallies.reports.case(!known.has(sessionId), `${sessionId} began twice.`, ...proof(live.get(sessionId), event));
      tallies.ends.case(ended === null, `${sessionId} began after the room had ended.`, ...proof(ended, event));
      const removal = removed.get(participantId);
      if (removal !== undefined) {
        tallies.removals.broken(`${participantId} joined after its removal.`, ...proof(removal, event));
      }
      known.add(sessionId);
      live.set(sessionId, event);
      const sentence = `${live.size} participants are in a room for ${places}.`;
      tallies.capacity.case(live.size <= places, sentence, ...proof(...live.values()));
    } else if (type === 'participant.left') {
      tallies.reports.case(live.has(sessionId), `${sessionId} ended twice, or never began.`, ...proof(event));
      live.delete(sessionId);
      if (event.reason === 'removed') removed.set(participantId, event);
    }
  }
  if (ended === null) return;
  for (const session of live.values()) {
    tallies.reports.broken(`${session.sessionId} has not left although its room has ended.`, ...proof(session, ended));
  }
}

function acceptances({ requests }: History): Map<string, RequestLine> {
  const accepted = new Map<string, RequestLine>();
  for (const request of requests) {
    const id = request.method === 'DELETE' && isSuccess(request) ? namedBy(request.path) : null;
    if (id === null) continue;
    const earlier = accepted.get(id);
    if (earlier === undefined || request.endMs < earlier.endMs) accepted.set(id, request);
  }
  return accepted;
}

const isJoin = ({ what, frame }: FrameLine): boolean => what === 'sent' && textIn(frame, 'type') === 'join';
const isWelcome = ({ what, frame }: FrameLine): boolean => what === 'received' && textIn(frame, 'type') === 'welcome';

/** A join that was sent after the acceptance had been answered must not be welcomed. */
function lateJoins(history: History, ends: Tally, removals: Tally): void {
  const accepted = acceptances(history);
  for (const frames of groupBy(history.frames, ({ connection }) => connection).values()) {
    const join = frames.find(isJoin);
    if (join === undefined) continue;
    const welcome = frames.find(isWelcome);
    check(ends, join.roomId, join, welcome);
    check(removals, join.participantId, join, welcome);
  }

  function check(tally: Tally, id: string, join: FrameLine, welcome: FrameLine | undefined): void {
    const acceptance = accepted.get(id);
    if (acceptance === undefined || join.atMs <= acceptance.endMs) return;
    const evidence = [
      requestEvidence(acceptance),
      ...[join, welcome].flatMap((line) => (line ? frameEvidence(line) : [])),
    ];
    tally.case(welcome === undefined, `A participant joined after ${id} was ended or removed.`, ...evidence);
  }
}

/**
 * A participant who is in a room can join once more, which ends the earlier session. Only of joins that got nothing but
 * the answer that the service is unavailable, while no fault was near.
 */
function laterJoins(history: History, single: Tally): void {
  const faults = faultsOf(history);
  for (const frames of groupBy(history.frames, ({ participantId }) => participantId).values()) {
    const calls = [...groupBy(frames, ({ call }) => call).values()];
    for (const later of calls) {
      const [join, end] = [later.find(isJoin), later.find(({ what }) => what === 'ended')];
      if (join === undefined) continue;
      const earlier = calls.find((call) => call !== later && isLiveAt(call, join.atMs));
      const welcome = later.find(isWelcome);
      if (earlier === undefined) continue;
      if (welcome !== undefined) single.held();
      const closed = later.filter(({ what }) => what === 'closed');
      if (welcome !== undefined || end === undefined || closed.some(({ reason }) => reason !== 'unavailable')) continue;
      if (closed.length === 0 || faults.overlap(join.atMs - faults.recoveryMs, end.atMs)) continue;
      const evidence = [earlier.find(isWelcome), join, closed[0], end].flatMap((line) =>
        line ? frameEvidence(line) : [],
      );
      single.broken(`${join.participantId} could not join over its earlier session.`, ...evidence);
    }
  }
}

function isLiveAt(call: readonly FrameLine[], atMs: number): boolean {
  const welcome = call.find(isWelcome);
  const end = call.find(({ what }) => what === 'ended');
  return welcome !== undefined && welcome.atMs < atMs && (end === undefined || end.atMs > atMs);
}

/** At the end, an ended room and a removed participant have no live session. */
function sessionsLeft(history: History, ends: Tally, removals: Tally): void {
  const accepted = acceptances(history);
  const objects = finalObjects(history, '');
  const completed = new Set(objects.flatMap(({ id, object }) => (object['status'] === 'completed' ? id : [])));
  const isCompleted = (acceptance: RequestLine): boolean =>
    objectsWithId(acceptance.answer).some(({ id }) => completed.has(String(id)));
  for (const { id, object: session, request } of objects) {
    if (!id.startsWith('sess_') || !('leftAt' in session)) continue;
    for (const [tally, of] of [[ends, 'roomId'] as const, [removals, 'participantId'] as const]) {
      const acceptance = accepted.get(String(session[of]));
      if (acceptance === undefined || !isCompleted(acceptance)) continue;
      const sentence = `${id} lives although ${String(session[of])} was ended or removed.`;
      tally.case(session['leftAt'] !== null, sentence, requestEvidence(acceptance), requestEvidence(request));
    }
  }
}

/** After the end of a room or a removal has completed, nothing of it is relayed. */
function nothingRelayed(history: History, ends: Tally, removals: Tally): void {
  const completed = completions(history);
  const publishers = publishersOf(history);
  for (const samples of groupBy(history.media, ({ call }) => call).values()) {
    const [first] = samples;
    if (first === undefined) continue;
    const { roomId, participantId } = first;
    checkRelayed(ends, samples, completed.get(roomId));
    const own = completed.get(participantId);
    checkRelayed(removals, samples, own);
    const [publisher, ...others] = publishers.get(roomId) ?? [];
    if (publisher === undefined || others.length > 0 || publisher === participantId) continue;
    checkRelayed(removals, samples, completed.get(publisher));
  }
}

/** Only a call that has received something says anything. */
function checkRelayed(tally: Tally, samples: readonly MediaLine[], completion: RequestLine | undefined): void {
  if (completion === undefined) return;
  const after = samples.filter(({ atMs }) => atMs > completion.endMs + ON_THEIR_WAY_MS);
  const [first, last] = [after[0], after.at(-1)];
  if (first === undefined || last === undefined || first === last || last.packetsReceived === 0) return;
  // A sample misses the connections that were just closing.
  const before = samples.filter(({ atMs }) => atMs <= first.atMs).map(({ packetsReceived }) => packetsReceived);
  const count = last.packetsReceived - Math.max(...before);
  const sentence = `${last.call} received ${count} packets after a room or participant was gone.`;
  tally.case(count <= 0, sentence, requestEvidence(completion), ...[first, last].map(mediaEvidence));
}

/** The first answer that says of a room or a participant that its end has completed. */
function completions({ requests }: History): Map<string, RequestLine> {
  const operations = new Map<string, string>();
  const completed = new Map<string, RequestLine>();
  const note = (id: string | undefined | null, request: RequestLine): void => {
    const earlier = id == null ? undefined : completed.get(id);
    if (id != null && (earlier === undefined || request.endMs < earlier.endMs)) completed.set(id, request);
  };
  for (const request of requests.filter(isSuccess)) {
    const id = request.method === 'DELETE' ? namedBy(request.path) : null;
    if (id === null) continue;
    if (request.status === 204) note(id, request);
    for (const operation of objectsWithId(request.answer)) operations.set(String(operation['id']), id);
  }
  for (const request of requests.filter((each) => each.method === 'GET' && isSuccess(each))) {
    if (textIn(request.answer, 'status') === 'completed')
      note(operations.get(textIn(request.answer, 'id') ?? ''), request);
  }
  return completed;
}

/** The participants of each room who have offered tracks. */
function publishersOf({ frames }: History): Map<string, string[]> {
  const offers = frames.filter(({ what, frame }) => what === 'sent' && textIn(frame, 'type') === 'publish');
  const ofRooms = groupBy(offers, ({ roomId }) => roomId);
  return new Map(
    [...ofRooms].map(([roomId, sent]) => [roomId, [...new Set(sent.map(({ participantId }) => participantId))]]),
  );
}

function mediaEvidence({ n, call, participantId, packetsReceived, atMs }: MediaLine): Evidence {
  return {
    file: 'media',
    n,
    says: `${call} of ${participantId} has received ${packetsReceived} packets at ${Math.round(atMs)} ms`,
  };
}
