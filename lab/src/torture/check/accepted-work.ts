import type { DeliveryLine, JsonObject, RequestLine } from '../history.js';
import {
  deliveryEvidence,
  faultsOf,
  finalObjects,
  groupBy,
  hasSettled,
  idsIn,
  isAccepted,
  isObject,
  isSuccess,
  namedBy,
  numberIn,
  objectsWithId,
  parse,
  received,
  requestEvidence,
  roomCreations,
  textIn,
  type History,
} from './facts.js';
import { Tally, type Finding } from './finding.js';

const ATTEMPTS_MAX = 8;
/** Bound of A3, and time that the request to the receiver may take on a busy machine. */
const LOST_WAKE_UP_MS = 15_000;
const ON_ITS_WAY_MS = 5000;
/** How long the service may spare a receiver that failed or was slow. */
const UNWELL_MS = 60_000;
const PROMPT_MS = 1000;
/** A service that sends nothing for this long has free slots, unless attempts that hang hold them. */
const IDLE_MS = 5000;
/** Deadline of an attempt in the fleet, and half of the slots that its two workers have for slow endpoints. */
const DEADLINE_MS = 5000;
const SLOTS_HELD = 3;

/** The codes of operations that have used up their attempts. */
const OF_ATTEMPTS = ['STEP_FAILED', 'LEASE_EXPIRED'];

export function checkAcceptedWork(history: History): Finding[] {
  return [
    writesKept(history),
    operationsEnd(history),
    attemptsInTime(history),
    oneWriter(history),
    repeatedPosts(history),
    tenantsApart(history),
  ].map((tally) => tally.finding());
}

/** The requests that created objects, by the id of the object. */
function creations({ requests }: History): Map<string, RequestLine> {
  const created = new Map<string, RequestLine>();
  for (const request of requests) {
    if (request.method === 'GET' || !isSuccess(request)) continue;
    for (const { id } of objectsWithId(request.answer)) if (!created.has(String(id))) created.set(String(id), request);
  }
  return created;
}

function writesKept(history: History): Tally {
  const tally = new Tally('A1', 'no object that a request created is read at the end');
  const created = creations(history);
  const deleted = new Set(
    history.requests.flatMap(({ method, path }) => (method === 'DELETE' ? (namedBy(path) ?? []) : [])),
  );
  for (const request of history.requests) {
    const id = request.phase === 'final' && request.method === 'GET' ? namedBy(request.path) : null;
    const creation = id === null ? undefined : created.get(id);
    if (id === null || creation?.tenant !== request.tenant || request.status === null || request.status >= 500)
      continue;
    // A deleted endpoint is gone; rooms and participants stay readable.
    if (deleted.has(id) && id.startsWith('whe')) continue;
    const sentence = `${id} was created and is not found at the end.`;
    tally.case(request.status !== 404, sentence, requestEvidence(creation), requestEvidence(request));
  }
  return tally;
}

function operationsEnd(history: History): Tally {
  const tally = new Tally('A2', 'no operation is read at the end, or open ones had no time to end');
  const created = creations(history);
  const settled = hasSettled(history);
  const latest = new Map(finalObjects(history, 'op_').map((found) => [found.id, found]));
  for (const [id, { object: operation, request }] of latest) {
    const creation = created.get(id);
    const evidence = [...(creation === undefined ? [] : [requestEvidence(creation)]), requestEvidence(request)];
    const { kind, status, attempts, lastError } = operation;
    if (status === 'pending') {
      if (settled) tally.broken(`${id} is still pending although the service had settled.`, ...evidence);
    } else if (status === 'failed') {
      // A move of somebody who has left, or into a room that has filled or ended, fails at once.
      const code = textIn(lastError, 'code');
      const isRefused = kind === 'participant.move' && code !== null && !OF_ATTEMPTS.includes(code);
      const isEarned = isRefused || (Number(attempts) >= ATTEMPTS_MAX && isObject(lastError));
      tally.case(isEarned, `${id} failed after ${String(attempts)} attempts, or without a reason.`, ...evidence);
    } else tally.held();
  }
  return tally;
}

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
function attemptsInTime(history: History): Tally {
  const tally = new Tally('A3', 'no room was created while no fault was active and an endpoint had been there before');
  const faults = faultsOf(history);
  const unwell = history.deliveries.filter((line) => !isPrompt(line));
  const arrivals = [...history.deliveries].sort((a, b) => a.startMs - b.startMs);
  for (const firsts of groupBy(firstAttempts(history), ({ line }) => line.url).values()) {
    for (const first of firsts) {
      const { line, eventId, creation } = first;
      const latestMs = creation.endMs + LOST_WAKE_UP_MS + ON_ITS_WAY_MS;
      if (faults.overlap(creation.startMs - faults.recoveryMs, Math.max(latestMs, line.startMs))) continue;
      // The slots of a receiver that fails are few, and taken by other events.
      const fromMs = creation.startMs - UNWELL_MS;
      if (unwell.some(({ url, startMs }) => url === line.url && startMs > fromMs && startMs < line.startMs)) continue;
      const isInTime = line.startMs <= latestMs;
      if (!isInTime && !isOvertaken(first, firsts, arrivals) && !isIdle(arrivals, creation.endMs, line.startMs))
        continue;
      const sentence = `The first attempt at ${eventId} came ${Math.round(line.startMs - creation.endMs)} ms after the room.`;
      tally.case(isInTime, sentence, requestEvidence(creation), deliveryEvidence(line));
    }
  }
  return tally;
}

function firstAttempts(history: History): First[] {
  const creations = roomCreations(history);
  const seen = new Set<string>();
  return received(history).flatMap(({ line, event }): First[] => {
    const creation = creations.get(event?.roomId ?? '');
    const key = `${line.url} ${event?.id}`;
    if (event?.type !== 'room.created' || creation === undefined || seen.has(key)) return [];
    seen.add(key);
    return [{ line, eventId: event.id, creation }];
  });
}

const isPrompt = (line: DeliveryLine): boolean =>
  isAccepted(line) && line.answeredMs !== null && line.answeredMs - line.startMs < PROMPT_MS;

/** Whether the event of a later room came long before: the endpoint had a slot, and this event was overlooked. */
function isOvertaken({ line, creation }: First, firsts: readonly First[], arrivals: readonly DeliveryLine[]): boolean {
  return firsts.some(
    (other) =>
      other.creation.startMs > creation.endMs &&
      other.line.startMs + ON_ITS_WAY_MS < line.startMs &&
      hadFreeSlots(arrivals, other.line.startMs, line.startMs),
  );
}

/** Whether no attempt began for a while although slots were free. */
function isIdle(arrivals: readonly DeliveryLine[], fromMs: number, untilMs: number): boolean {
  const within = arrivals.map(({ startMs }) => startMs).filter((atMs) => atMs > fromMs && atMs < untilMs);
  return [...within, untilMs].some((atMs, n) => {
    const sinceMs = within[n - 1] ?? fromMs;
    return atMs - sinceMs >= IDLE_MS && hadFreeSlots(arrivals, sinceMs, atMs);
  });
}

/** Whether attempts held few slots on average: an endpoint whose environment has a slow one waits for those. */
function hadFreeSlots(arrivals: readonly DeliveryLine[], fromMs: number, untilMs: number): boolean {
  const heldMs = arrivals.map(({ startMs, answeredMs, answer }) => {
    const endMs = answer === 'hang' ? startMs + DEADLINE_MS : (answeredMs ?? startMs);
    return Math.max(0, Math.min(endMs, untilMs) - Math.max(startMs, fromMs));
  });
  return heldMs.reduce((sum, each) => sum + each, 0) < SLOTS_HELD * (untilMs - fromMs);
}

function oneWriter(history: History): Tally {
  const tally = new Tally('A4', 'no attempts of a delivery are read at the end');
  const keyOf = ({ object }: { object: JsonObject }): string =>
    [object['deliveryId'], object['replayCount'], object['attempt']].join(' ');
  for (const [key, same] of groupBy(finalObjects(history, 'att_'), keyOf)) {
    const ids = new Set(same.map(({ id }) => id));
    const number = numberIn(same[0]?.object, 'attempt') ?? 0;
    const isOne = ids.size === 1 && number >= 1 && number <= ATTEMPTS_MAX;
    const evidence = same.slice(0, 2).map(({ request }) => requestEvidence(request));
    tally.case(isOne, `The attempt ${key} has ${ids.size} outcomes.`, ...evidence);
  }
  return tally;
}

function repeatedPosts(history: History): Tally {
  const { requests } = history;
  const tally = new Tally('A5', 'no POST with an Idempotency-Key was answered twice');
  const keyed = requests.filter(({ method, idempotencyKey }) => method === 'POST' && idempotencyKey !== null);
  const keyOf = ({ tenant, path, idempotencyKey, body }: RequestLine): string =>
    [tenant, path, idempotencyKey, JSON.stringify(body)].join(' ');
  for (const same of groupBy(keyed.filter(isSuccess), keyOf).values()) {
    const [first, ...others] = same;
    for (const other of others) {
      const ids = [first, other].map((request) => textIn(request?.answer, 'id'));
      const sentence = `Two requests with one key got ${ids.join(' and ')}.`;
      tally.case(ids[0] === ids[1], sentence, requestEvidence(first as RequestLine), requestEvidence(other));
    }
  }
  roomsOnce(history, tally);
  return tally;
}

/** A repetition creates nothing if the first answer got lost, either. The rooms tell by their names. */
function roomsOnce(history: History, tally: Tally): void {
  const { requests } = history;
  const found = finalObjects(history, 'room_').filter(({ object }) => typeof object['name'] === 'string');
  const idsOf = groupBy(found, ({ object, request }) => `${request.tenant} ${String(object['name'])}`);
  const creations = requests.filter(({ method, path }) => method === 'POST' && path === '/v1/rooms');
  const nameOf = ({ tenant, body }: RequestLine): string | null => {
    const name = textIn(body, 'name');
    return name === null ? null : `${tenant} ${name}`;
  };
  for (const [name, same] of groupBy(creations, nameOf)) {
    const [key, ...otherKeys] = new Set(same.map(({ idempotencyKey }) => idempotencyKey));
    const ids = new Set(idsOf.get(name)?.map(({ id }) => id));
    if (key === null || otherKeys.length > 0 || same.length < 2 || ids.size === 0) continue;
    const sentence = `Requests with one key created ${[...ids].join(' and ')}.`;
    tally.case(ids.size === 1, sentence, ...same.slice(0, 2).map(requestEvidence));
  }
}

function tenantsApart(history: History): Tally {
  const tally = new Tally('A6', 'there is one tenant, or none asked for rows of another');
  const owners = creations(history);
  for (const request of history.requests) {
    const id = idsIn(request.path).find((each) => (owners.get(each)?.tenant ?? request.tenant) !== request.tenant);
    const owner = id === undefined ? undefined : owners.get(id);
    if (id === undefined || owner === undefined || request.status === null) continue;
    const sentence = `Tenant ${request.tenant} reached ${id} of tenant ${owner.tenant}.`;
    tally.case(!isSuccess(request), sentence, requestEvidence(owner), requestEvidence(request));
  }
  const environments = new Map(history.run.tenants.map(({ name, environmentId }) => [name, environmentId]));
  for (const line of history.deliveries) {
    const environmentId = textIn(parse(line.body), 'environmentId');
    if (environmentId === null || environments.size < 2) continue;
    const sentence = `A receiver of tenant ${line.tenant} got an event of ${environmentId}.`;
    tally.case(environments.get(line.tenant) === environmentId, sentence, deliveryEvidence(line));
  }
  return tally;
}
