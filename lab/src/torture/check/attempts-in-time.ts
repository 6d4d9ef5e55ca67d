import type { DeliveryLine, RequestLine } from '../history.js';
import {
  deliveryEvidence,
  eventOf,
  groupBy,
  isSuccess,
  parse,
  requestEvidence,
  textIn,
  type History,
} from './facts.js';
import { faultsOf } from './faults.js';
import { Tally } from './finding.js';

/** Bound of A3, and time that the request to the receiver may take on a busy machine. */
const LOST_WAKE_UP_MS = 15_000;
const ON_ITS_WAY_MS = 5000;
/** How long the service may spare a receiver that failed or was slow. */
const UNWELL_MS = 60_000;
const PROMPT_MS = 1000;
/** A service that sends nothing for this long has free slots. */
const IDLE_MS = 5000;

/** The first attempt at the event of a new room, at one endpoint. */
interface First {
  line: DeliveryLine;
  eventId: string;
  creation: RequestLine;
}

/**
 * Only rooms that were created while no fault was active, and receivers that answered all else at once: then nothing but
 * a lost wake-up or a backlog delays the first attempt. An attempt after the bound counts only if there was no backlog.
 */
export function attemptsInTime(history: History): Tally {
  const tally = new Tally('A3', 'no room was created while no fault was active and an endpoint had been there before');
  const faults = faultsOf(history);
  const unwell = history.deliveries.filter((line) => !isPrompt(line));
  const arrivalsMs = history.deliveries.map(({ startMs }) => startMs).sort((a, b) => a - b);
  for (const firsts of groupBy(firstAttempts(history), ({ line }) => line.url).values()) {
    for (const first of firsts) {
      const { line, eventId, creation } = first;
      const latestMs = creation.endMs + LOST_WAKE_UP_MS + ON_ITS_WAY_MS;
      if (faults.overlap(creation.startMs - faults.recoveryMs, Math.max(latestMs, line.startMs))) continue;
      // The slots of a receiver that fails are few, and taken by other events.
      const fromMs = creation.startMs - UNWELL_MS;
      if (unwell.some(({ url, startMs }) => url === line.url && startMs > fromMs && startMs < line.startMs)) continue;
      const isInTime = line.startMs <= latestMs;
      if (!isInTime && !isOvertaken(first, firsts) && !isIdle(arrivalsMs, creation.endMs, line.startMs)) continue;
      const sentence = `The first attempt at ${eventId} came ${Math.round(line.startMs - creation.endMs)} ms after the room.`;
      tally.case(isInTime, sentence, requestEvidence(creation), deliveryEvidence(line));
    }
  }
  return tally;
}

function firstAttempts({ requests, deliveries }: History): First[] {
  const creations = new Map(
    requests.flatMap((request) => {
      const id = textIn(request.answer, 'id');
      return request.method === 'POST' && request.path === '/v1/rooms' && isSuccess(request) && id !== null
        ? [[id, request] as const]
        : [];
    }),
  );
  const seen = new Set<string>();
  return deliveries.flatMap((line): First[] => {
    const event = eventOf(parse(line.body), deliveryEvidence(line));
    const creation = creations.get(event?.roomId ?? '');
    const key = `${line.url} ${event?.id}`;
    if (event?.type !== 'room.created' || creation === undefined || seen.has(key)) return [];
    seen.add(key);
    return [{ line, eventId: event.id, creation }];
  });
}

function isPrompt({ answer, startMs, answeredMs }: DeliveryLine): boolean {
  const isAccepted = typeof answer === 'number' && answer >= 200 && answer < 300;
  return isAccepted && answeredMs !== null && answeredMs - startMs < PROMPT_MS;
}

/** Whether the event of a later room came long before: the endpoint had a slot, and this event was overlooked. */
function isOvertaken({ line, creation }: First, firsts: readonly First[]): boolean {
  return firsts.some(
    (other) => other.creation.startMs > creation.endMs && other.line.startMs + ON_ITS_WAY_MS < line.startMs,
  );
}

/** Whether no receiver got anything for a while between these times. */
function isIdle(arrivalsMs: readonly number[], fromMs: number, untilMs: number): boolean {
  const within = arrivalsMs.filter((atMs) => atMs > fromMs && atMs < untilMs);
  return [...within, untilMs].some((atMs, n) => atMs - (within[n - 1] ?? fromMs) >= IDLE_MS);
}
