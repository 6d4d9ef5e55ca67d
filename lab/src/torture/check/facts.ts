import type { DeliveryLine, FrameLine, HistoryLines, JsonObject, RequestLine } from '../history.js';
import type { Evidence } from './finding.js';

/** How deep answers are searched for objects. */
const DEPTH_MAX = 5;
/** Time after a fault in which the service may still be late: leases end, processes start, connections return. */
const RECOVERY_MS = 30_000;
const LEASE_MS = 120_000;

/** A history that was read, each file in its own order. */
export type History = { run: HistoryLines['run'] } & {
  [File in Exclude<keyof HistoryLines, 'run'>]: HistoryLines[File][];
};

export interface EventFact {
  id: string;
  type: string;
  sequence: number | null;
  environmentId: string;
  roomId: string | null;
  participantId: string | null;
  sessionId: string | null;
  /** Why a session has ended. */
  reason: string | null;
  createdAt: string | null;
  /** The participant in the room that a move has left. */
  movedFrom: string | null;
  from: Evidence;
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function textIn(value: unknown, ...path: string[]): string | null {
  const found = valueIn(value, ...path);
  return typeof found === 'string' ? found : null;
}

export function numberIn(value: unknown, ...path: string[]): number | null {
  const found = valueIn(value, ...path);
  return typeof found === 'number' ? found : null;
}

function valueIn(value: unknown, ...path: string[]): unknown {
  let found = value;
  for (const name of path) found = isObject(found) ? found[name] : undefined;
  return found;
}

export const isSuccess = ({ status }: RequestLine): boolean => status !== null && status >= 200 && status < 300;

export function requestEvidence({ n, method, path, status, startMs, endMs, tenant }: RequestLine): Evidence {
  const times = `${Math.round(startMs)}–${Math.round(endMs)} ms`;
  return { file: 'requests', n, says: `tenant ${tenant}: ${method} ${path} → ${status ?? 'no answer'}, ${times}` };
}

export function deliveryEvidence({ n, url, startMs, answeredMs, answer, body }: DeliveryLine): Evidence {
  const event = parse(body);
  const what = `${textIn(event, 'type')} ${textIn(event, 'id')}, sequence ${numberIn(event, 'sequence')}`;
  const times = `${Math.round(startMs)}–${answeredMs === null ? '' : Math.round(answeredMs)} ms`;
  return { file: 'deliveries', n, says: `${what} to ${url} → ${answer}, ${times}` };
}

export function frameEvidence({ n, connection, what, frame, atMs, participantId }: FrameLine): Evidence {
  const type = frame === null ? '' : ` ${textIn(frame, 'type') ?? ''}`;
  return { file: 'frames', n, says: `${connection} of ${participantId}: ${what}${type} at ${Math.round(atMs)} ms` };
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

/** @returns null if the object is not an event. */
function eventOf(value: unknown, from: Evidence): EventFact | null {
  const id = textIn(value, 'id');
  const type = textIn(value, 'type');
  const environmentId = textIn(value, 'environmentId');
  if (id?.startsWith('evt_') !== true || type === null || environmentId === null) return null;
  return {
    id,
    type,
    environmentId,
    sequence: numberIn(value, 'sequence'),
    roomId: textIn(value, 'data', 'room', 'id'),
    participantId: textIn(value, 'data', 'participant', 'id'),
    sessionId: textIn(value, 'data', 'sessionId'),
    reason: textIn(value, 'data', 'reason'),
    createdAt: textIn(value, 'createdAt'),
    movedFrom: textIn(value, 'data', 'movedFrom', 'participantId'),
    from,
  };
}

/** The id of the object that a path names: `/v1/rooms/room_1` names `room_1`; null for a list or an action. */
export function namedBy(path: string): string | null {
  const last = (path.split('?')[0] ?? '').split('/').at(-1) ?? '';
  return /^[a-z]+_\w+$/.test(last) ? last : null;
}

export function idsIn(path: string): string[] {
  return (path.split('?')[0] ?? '').split('/').filter((part) => /^[a-z]+_\w+$/.test(part));
}

/** Every object with an id in an answer. */
export function objectsWithId(answer: unknown, depth = 0): JsonObject[] {
  if (depth > DEPTH_MAX || typeof answer !== 'object' || answer === null) return [];
  const inside = Object.values(answer).flatMap((value) => objectsWithId(value, depth + 1));
  return isObject(answer) && typeof answer['id'] === 'string' ? [answer, ...inside] : inside;
}

export interface Found {
  id: string;
  object: JsonObject;
  request: RequestLine;
}

/** The objects of the final reads whose id has this prefix, each as often as it was read. */
export function finalObjects({ requests }: History, prefix: string): Found[] {
  const final = requests.filter((request) => request.phase === 'final' && isSuccess(request));
  return final.flatMap((request) =>
    objectsWithId(request.answer)
      .map((object) => ({ id: String(object['id']), object, request }))
      .filter(({ id }) => id.startsWith(prefix)),
  );
}

export function finalEvents(history: History): Map<string, EventFact> {
  const found = finalObjects(history, 'evt_').filter(({ request }) => request.path.startsWith('/v1/events'));
  const events = found.map(({ object, request }) => eventOf(object, requestEvidence(request)));
  return new Map(events.flatMap((event) => (event === null ? [] : [[event.id, event]])));
}

/** The requests that created rooms, by the id of the room. */
export function roomCreations({ requests }: History): Map<string, RequestLine> {
  const posts = requests.filter(({ method, path }) => method === 'POST' && path === '/v1/rooms').filter(isSuccess);
  return new Map(posts.map((request) => [textIn(request.answer, 'id') ?? '', request]));
}

export interface Received {
  line: DeliveryLine;
  event: EventFact | null;
  deliveryId: string | null;
}

export function received({ deliveries }: History): Received[] {
  return deliveries.map((line) => {
    const event = eventOf(parse(line.body), deliveryEvidence(line));
    return { line, event, deliveryId: line.headers['x-service-delivery-id'] ?? null };
  });
}

export const isAccepted = ({ answer }: DeliveryLine): boolean =>
  typeof answer === 'number' && answer >= 200 && answer < 300;

/** Groups by a key; items without one are left out. */
export function groupBy<T>(items: Iterable<T>, keyOf: (item: T) => string | null): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (key === null) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** Whether the run reached a state without open operations and deliveries. */
export function hasSettled({ marks }: History): boolean {
  return marks.some(({ mark, detail }) => mark === 'settled' && detail['reached'] !== false);
}

/** Whether the final reads have an end: a row that they do not show does not exist. */
export function hasReadAll({ marks }: History): boolean {
  return marks.some(({ mark }) => mark === 'final reads ended');
}

export interface Faults {
  /** Time after the end of a fault that still belongs to it. */
  recoveryMs: number;
  overlap(fromMs: number, untilMs: number): boolean;
}

export function faultsOf({ nemesis, run }: Pick<History, 'nemesis' | 'run'>): Faults {
  const begins = new Map<string, number>();
  const intervals: [fromMs: number, untilMs: number][] = [];
  for (const { fault, what, atMs } of nemesis) {
    if (what === 'begin') begins.set(fault, atMs);
    else {
      intervals.push([begins.get(fault) ?? -Infinity, atMs]);
      begins.delete(fault);
    }
  }
  for (const atMs of begins.values()) intervals.push([atMs, Infinity]);
  // A killed worker's lease ends after its length.
  const recoveryMs = Math.max(RECOVERY_MS, run.settings.leaseMs ?? LEASE_MS);
  return { recoveryMs, overlap: (from, until) => intervals.some(([begin, end]) => begin <= until && end >= from) };
}
