import type { JsonObject, RequestLine } from '../history.js';
import {
  deliveryEvidence,
  groupBy,
  hasSettled,
  idsIn,
  isObject,
  isSuccess,
  namedBy,
  numberIn,
  parse,
  requestEvidence,
  textIn,
  type History,
} from './facts.js';
import { attemptsInTime } from './attempts-in-time.js';
import { Tally, type Finding } from './finding.js';

const ATTEMPTS_MAX = 8;
/** How deep answers are searched for objects. */
const DEPTH_MAX = 5;

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

/** Every object with an id in an answer. */
export function objectsWithId(answer: unknown, depth = 0): JsonObject[] {
  if (depth > DEPTH_MAX || typeof answer !== 'object' || answer === null) return [];
  const inside = Object.values(answer).flatMap((value) => objectsWithId(value, depth + 1));
  return isObject(answer) && typeof answer['id'] === 'string' ? [answer, ...inside] : inside;
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
  const latest = new Map<string, { operation: JsonObject; request: RequestLine }>();
  for (const request of history.requests) {
    if (request.phase !== 'final' || !isSuccess(request)) continue;
    for (const operation of objectsWithId(request.answer)) {
      if (String(operation['id']).startsWith('op_')) latest.set(String(operation['id']), { operation, request });
    }
  }
  for (const [id, { operation, request }] of latest) {
    const creation = created.get(id);
    const evidence = [...(creation === undefined ? [] : [requestEvidence(creation)]), requestEvidence(request)];
    const { status, attempts, lastError } = operation;
    if (status === 'pending') {
      if (settled) tally.broken(`${id} is still pending although the service had settled.`, ...evidence);
    } else if (status === 'failed') {
      const isEarned = Number(attempts) >= ATTEMPTS_MAX && isObject(lastError);
      tally.case(isEarned, `${id} failed after ${String(attempts)} attempts, or without a reason.`, ...evidence);
    } else tally.held();
  }
  return tally;
}

function oneWriter({ requests }: History): Tally {
  const tally = new Tally('A4', 'no attempts of a delivery are read at the end');
  const attempts = requests
    .filter((request) => request.phase === 'final' && isSuccess(request))
    .flatMap((request) =>
      objectsWithId(request.answer)
        .filter(({ id }) => String(id).startsWith('att_'))
        .map((attempt) => ({ attempt, request })),
    );
  const keyOf = ({ attempt }: { attempt: JsonObject }): string =>
    [attempt['deliveryId'], attempt['replayCount'], attempt['attempt']].join(' ');
  for (const [key, same] of groupBy(attempts, keyOf)) {
    const ids = new Set(same.map(({ attempt }) => attempt['id']));
    const number = numberIn(same[0]?.attempt, 'attempt') ?? 0;
    const isOne = ids.size === 1 && number >= 1 && number <= ATTEMPTS_MAX;
    const evidence = same.slice(0, 2).map(({ request }) => requestEvidence(request));
    tally.case(isOne, `The attempt ${key} has ${ids.size} outcomes.`, ...evidence);
  }
  return tally;
}

function repeatedPosts({ requests }: History): Tally {
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
  roomsOnce(requests, tally);
  return tally;
}

/** A repetition creates nothing if the first answer got lost, either. The rooms tell by their names. */
function roomsOnce(requests: readonly RequestLine[], tally: Tally): void {
  const found = requests
    .filter((request) => request.phase === 'final' && isSuccess(request))
    .flatMap(({ tenant, answer }) => objectsWithId(answer).map((object) => ({ tenant, object })))
    .filter(({ object }) => String(object['id']).startsWith('room_') && typeof object['name'] === 'string');
  const idsOf = groupBy(found, ({ tenant, object }) => `${tenant} ${String(object['name'])}`);
  const creations = requests.filter(({ method, path }) => method === 'POST' && path === '/v1/rooms');
  const nameOf = ({ tenant, body }: RequestLine): string | null => {
    const name = textIn(body, 'name');
    return name === null ? null : `${tenant} ${name}`;
  };
  for (const [name, same] of groupBy(creations, nameOf)) {
    const [key, ...otherKeys] = new Set(same.map(({ idempotencyKey }) => idempotencyKey));
    const ids = new Set(idsOf.get(name)?.map(({ object }) => object['id']));
    if (key === null || otherKeys.length > 0 || same.length < 2 || ids.size === 0) continue;
    const sentence = `Requests with one key created ${[...ids].join(' and ')}.`;
    tally.case(ids.size === 1, sentence, ...same.slice(0, 2).map(requestEvidence));
  }
}

function tenantsApart(history: History): Tally {
  const tally = new Tally('A6', 'there is one tenant, or none asked for what belongs to another');
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
