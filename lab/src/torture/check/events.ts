import type { DeliveryLine, RequestLine } from '../history.js';
import {
  deliveryEvidence,
  faultsOf,
  finalEvents,
  finalObjects,
  groupBy,
  hasReadAll,
  hasSettled,
  isAccepted,
  isObject,
  isSuccess,
  namedBy,
  received,
  requestEvidence,
  roomCreations,
  textIn,
  type History,
  type Received,
} from './facts.js';
import { Tally, type Finding } from './finding.js';

const ATTEMPTS_MAX = 8;
const REPLAYS_MAX = 100;
/** Delays before the second to the eighth attempt of a run, in milliseconds. */
const DELAYS_MS = [5, 30, 120, 600, 1800, 3600, 21_600].map((seconds) => seconds * 1000);
/** Clocks of the receiver and the service may run at slightly different speeds. */
const EARLY_MS = 20;
/** In place of the id of a delivery. */
const ANY = 'any';

export function checkEvents(history: History): Finding[] {
  const all = received(history);
  return [
    committedTogether(history),
    numbered(history, all),
    delivered(history, all),
    sameBytes(all),
    retriesInTime(history, all),
    inOrder(history, all),
    new Tally('W7', 'the bound is for a service without faults, and a load of many tenants'),
    new Tally('W8', 'a receiver needs an allowed address, so no attempt can break it'),
    readable(history, all),
  ].map((tally) => tally.finding());
}

interface Endpoint {
  id: string;
  tenant: string;
  url: string;
  events: readonly unknown[];
  ordering: unknown;
  request: RequestLine;
}

/** Endpoints that were created in the run and neither changed nor deleted. */
function steadyEndpoints({ requests }: History): Endpoint[] {
  const changed = new Set(
    requests.flatMap(({ method, path }) => (['PATCH', 'DELETE'].includes(method) ? (namedBy(path) ?? []) : [])),
  );
  return requests.flatMap((request): Endpoint[] => {
    const { method, path, answer, tenant } = request;
    const id = textIn(answer, 'id');
    const url = textIn(answer, 'url');
    if (method !== 'POST' || path.split('?')[0] !== '/v1/webhooks' || !isSuccess(request)) return [];
    if (id === null || url === null || changed.has(id) || !isObject(answer)) return [];
    const events = Array.isArray(answer['events']) ? answer['events'] : [];
    return [{ id, url, tenant, events, ordering: answer['ordering'], request }];
  });
}

/** Every event of a room that is younger than an endpoint has a delivery to it. */
function committedTogether(history: History): Tally {
  const tally = new Tally('W1', 'the deliveries are not read to their end, or no room is younger than an endpoint');
  const deliveries = finalObjects(history, 'dlv_');
  const pairs = new Set(deliveries.map(({ object }) => `${String(object['eventId'])} ${String(object['endpointId'])}`));
  if (pairs.size === 0 || !hasReadAll(history)) return tally;
  const events = groupBy(finalEvents(history).values(), ({ roomId }) => roomId);
  const endpoints = steadyEndpoints(history);
  for (const [roomId, room] of roomCreations(history)) {
    const ofRoom = events.get(roomId) ?? [];
    for (const endpoint of endpoints) {
      if (endpoint.tenant !== room.tenant || endpoint.request.endMs >= room.startMs) continue;
      for (const event of ofRoom) {
        if (!endpoint.events.includes('*') && !endpoint.events.includes(event.type)) continue;
        const sentence = `${event.id} (${event.type}) has no delivery to ${endpoint.id}.`;
        tally.case(pairs.has(`${event.id} ${endpoint.id}`), sentence, requestEvidence(endpoint.request), event.from);
      }
    }
  }
  return tally;
}

function numbered(history: History, received: readonly Received[]): Tally {
  const tally = new Tally('W2', 'no events of a room are read at the end');
  const final = finalEvents(history);
  for (const [roomId, events] of groupBy(final.values(), (event) => event.roomId)) {
    const inOrder = events
      .filter(({ sequence }) => sequence !== null)
      .sort((a, b) => Number(a.sequence) - Number(b.sequence));
    const wrong = inOrder.findIndex(({ sequence }, at) => sequence !== at + 1);
    const evidence = inOrder.slice(Math.max(0, wrong - 1), wrong + 1).map(({ from, id, sequence }) => {
      return { ...from, says: `${id} has sequence ${sequence}` };
    });
    tally.case(wrong === -1, `The events of ${roomId} have a gap or a number twice at ${wrong + 1}.`, ...evidence);
  }
  for (const { line, event } of received) {
    const read = event === null ? undefined : final.get(event.id);
    if (event === null || read === undefined || read.sequence === event.sequence) continue;
    tally.broken(`${event.id} was sent with another number than it has.`, deliveryEvidence(line), read.from);
  }
  return tally;
}

function delivered(history: History, received: readonly Received[]): Tally {
  const tally = new Tally('W3', 'no deliveries are read at the end');
  const settled = hasSettled(history);
  const got = new Set(received.flatMap(({ line, deliveryId }) => (isAccepted(line) ? (deliveryId ?? []) : [])));
  const objects = finalObjects(history, '');
  const disabled = new Set(objects.flatMap(({ id, object }) => (object['enabled'] === false ? id : [])));
  const deliveries = objects.filter(({ id }) => id.startsWith('dlv_'));
  for (const [id, { object, request }] of new Map(deliveries.map((found) => [found.id, found]))) {
    const { status, failureReason, attempts, replayCount } = object;
    const evidence = requestEvidence(request);
    if (Number(attempts) > ATTEMPTS_MAX || Number(replayCount) > REPLAYS_MAX) {
      tally.broken(`${id} has ${String(attempts)} attempts and ${String(replayCount)} replays.`, evidence);
    } else if (status === 'succeeded') {
      tally.case(
        got.has(id),
        `${id} has succeeded, but its receiver answered none of its requests with 2xx.`,
        evidence,
      );
    } else if (status === 'failed') {
      tally.case(typeof failureReason === 'string', `${id} has failed without a reason.`, evidence);
    } else if (settled && !disabled.has(String(object['endpointId']))) {
      tally.broken(`${id} is still ${String(status)} although the service had settled.`, evidence);
    }
  }
  return tally;
}

function sameBytes(received: readonly Received[]): Tally {
  const tally = new Tally('W4', 'no delivery was sent twice');
  for (const [id, same] of groupBy(received, ({ deliveryId }) => deliveryId)) {
    const whole = same.filter(({ line }) => line.receivedMs !== null);
    for (const { line } of whole) {
      if (line.verified !== true) tally.broken(`${id} was sent with a ${line.verified}.`, deliveryEvidence(line));
    }
    const other = whole.find(({ line }) => line.bodySha256 !== whole[0]?.line.bodySha256);
    if (whole.length < 2) continue;
    const evidence = [whole[0], other].flatMap((one) => (one === undefined ? [] : deliveryEvidence(one.line)));
    tally.case(other === undefined, `${id} was sent with different bytes.`, ...evidence);
  }
  return tally;
}

/** Between two attempts without a fault near them, and without a request for a retry. */
function retriesInTime(history: History, received: readonly Received[]): Tally {
  const tally = new Tally('W5', 'no delivery was retried while no fault was active');
  const faults = faultsOf(history);
  // The first request for a retry of each delivery, and for a recovery, which may bring any delivery forward.
  const hastenedMs = new Map<string, number>();
  for (const { method, path, startMs } of history.requests) {
    const id = path.includes('/recoveries') ? ANY : /dlv_\w+/.exec(path)?.[0];
    if (method === 'POST' && id !== undefined) hastenedMs.set(id, Math.min(startMs, hastenedMs.get(id) ?? Infinity));
  }
  const isHastened = (run: string, atMs: number): boolean =>
    [ANY, run.split(' ')[0] ?? ''].some((id) => atMs >= (hastenedMs.get(id) ?? Infinity));
  const runOf = ({ line, deliveryId }: Received): string | null =>
    deliveryId === null ? null : `${deliveryId} ${line.headers['x-service-replay-count'] ?? 0}`;
  for (const [run, attempts] of groupBy(received, runOf)) {
    // An attempt whose connection turns out to be closed is sent again over a new one, with the same signature.
    const inOrder = attempts
      .sort((a, b) => a.line.startMs - b.line.startMs)
      .filter(({ line }, at, all) => signatureOf(line) !== signatureOf(all[at + 1]?.line));
    for (const [at, { line }] of inOrder.slice(1).entries()) {
      const before = (inOrder[at] as Received).line;
      const delayMs = DELAYS_MS[at];
      if (before.answeredMs === null || isAccepted(before) || delayMs === undefined) continue;
      if (isHastened(run, line.startMs)) continue;
      if (faults.overlap(before.startMs - faults.recoveryMs, line.startMs)) continue;
      const afterMs = line.startMs - before.answeredMs;
      const sentence = `Attempt ${at + 2} of ${run} came ${Math.round(afterMs)} ms after the one before.`;
      tally.case(afterMs >= delayMs - EARLY_MS, sentence, deliveryEvidence(before), deliveryEvidence(line));
    }
  }
  return tally;
}

function signatureOf(line: DeliveryLine | undefined): string | undefined {
  return line?.headers['x-service-signature'];
}

/** First runs at endpoints with the ordering `room`. */
function inOrder(history: History, received: readonly Received[]): Tally {
  const tally = new Tally('W6', 'no endpoint with the ordering `room` got two events of a room');
  const urls = new Set(steadyEndpoints(history).flatMap(({ ordering, url }) => (ordering === 'room' ? url : [])));
  const firstRuns = received.filter(
    ({ line, event }) =>
      urls.has(line.url) && event?.sequence != null && (line.headers['x-service-replay-count'] ?? '0') === '0',
  );
  for (const ofRoom of groupBy(firstRuns, ({ line, event }) => `${line.url} ${event?.roomId}`).values()) {
    const accepted = new Map<string, DeliveryLine>();
    for (const { line, event } of ofRoom) {
      const earlier = accepted.get(event?.id ?? '');
      if (!isAccepted(line) || line.answeredMs === null) continue;
      if (earlier === undefined || line.startMs < earlier.startMs) accepted.set(event?.id ?? '', line);
    }
    const sequenceOf = new Map(ofRoom.map(({ event }) => [event?.id ?? '', event?.sequence ?? 0]));
    for (const { line, event } of ofRoom) {
      // An earlier event whose first success began after this attempt.
      const late = [...accepted].find(
        ([id, first]) => (sequenceOf.get(id) ?? 0) < (event?.sequence ?? 0) && Number(first.answeredMs) > line.startMs,
      );
      if (sequenceOf.size < 2) continue;
      const evidence = late === undefined ? [] : [deliveryEvidence(late[1])];
      tally.case(
        late === undefined,
        `${event?.id} was sent before an earlier event.`,
        deliveryEvidence(line),
        ...evidence,
      );
    }
  }
  return tally;
}

/** Every event that a receiver got is in the list of its tenant. */
function readable(history: History, received: readonly Received[]): Tally {
  const tally = new Tally('W9', 'the events are not read to their end, or receivers got none');
  if (!hasReadAll(history)) return tally;
  const final = finalEvents(history);
  const rooms = new Set([...final.values()].map(({ roomId }) => roomId));
  const seen = new Set<string>();
  for (const { line, event } of received) {
    if (event === null || !rooms.has(event.roomId) || event.roomId === null || seen.has(event.id)) continue;
    seen.add(event.id);
    tally.case(final.has(event.id), `${event.id} was sent and is missing in GET /v1/events.`, deliveryEvidence(line));
  }
  return tally;
}
