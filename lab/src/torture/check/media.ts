import type { MediaLine, RequestLine } from '../history.js';
import { objectsWithId } from './accepted-work.js';
import { groupBy, isSuccess, namedBy, requestEvidence, textIn, type History } from './facts.js';
import type { Evidence, Tally } from './finding.js';

/** Packets on their way when an operation completes arrive within this time. */
const ON_THEIR_WAY_MS = 1000;

/** After the end of a room or a removal has completed, nothing of it is relayed. */
export function nothingRelayed(history: History, ends: Tally, removals: Tally): void {
  const completed = completions(history);
  const publishers = publishersOf(history);
  for (const samples of groupBy(history.media, ({ call }) => call).values()) {
    const [first] = samples;
    if (first === undefined) continue;
    const { roomId, participantId } = first;
    check(ends, samples, completed.get(roomId));
    const own = completed.get(participantId);
    check(removals, samples, own);
    const [publisher, ...others] = publishers.get(roomId) ?? [];
    if (publisher === undefined || others.length > 0 || publisher === participantId) continue;
    check(removals, samples, completed.get(publisher));
  }
}

/** Only a call that has received something says anything. */
function check(tally: Tally, samples: readonly MediaLine[], completion: RequestLine | undefined): void {
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
