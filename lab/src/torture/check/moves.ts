import {
  finalEvents,
  groupBy,
  idsIn,
  isSuccess,
  requestEvidence,
  textIn,
  type EventFact,
  type History,
} from './facts.js';
import { Tally, type Finding } from './finding.js';

/**
 * A move that has completed took a participant out of one room and into the other at the same moment, once. Any other
 * move took it nowhere.
 */
export function checkMoves(history: History): Finding[] {
  const tally = new Tally('R7', 'nobody was moved');
  const events = [...finalEvents(history).values()];
  const departures = groupBy(events.filter(isDeparture), ({ participantId }) => participantId);
  const arrivals = groupBy(events, ({ movedFrom }) => movedFrom);
  for (const id of new Set([...departures.keys(), ...arrivals.keys()])) {
    const [left = [], joined = []] = [departures.get(id), arrivals.get(id)];
    const isWhole = left.length === 1 && joined.length === 1 && left[0]?.createdAt === joined[0]?.createdAt;
    const sentence = `${id} left ${left.length} times as moved, and joined ${joined.length} times, or not at once.`;
    tally.case(isWhole, sentence, ...[...left, ...joined].map(({ from }) => from));
  }
  for (const request of history.requests) {
    if (request.phase !== 'final' || !request.path.endsWith('/move') || !isSuccess(request)) continue;
    const id = idsIn(request.path).at(-1) ?? '';
    const status = textIn(request.answer, 'status');
    const sentence = `The move of ${id} is ${status}, and its events say something else.`;
    tally.case(departures.has(id) === (status === 'completed'), sentence, requestEvidence(request));
  }
  return [tally.finding()];
}

const isDeparture = ({ type, reason }: EventFact): boolean => type === 'participant.left' && reason === 'moved';
