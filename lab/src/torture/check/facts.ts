import type {
  DeliveryLine,
  FrameLine,
  JsonObject,
  MarkLine,
  MediaLine,
  NemesisLine,
  RequestLine,
  RunLine,
} from '../history.js';
import type { Evidence } from './finding.js';

/** A history that was read, each file in its own order. */
export interface History {
  run: RunLine;
  requests: RequestLine[];
  frames: FrameLine[];
  deliveries: DeliveryLine[];
  media: MediaLine[];
  nemesis: NemesisLine[];
  marks: MarkLine[];
}

/** An event, as the API or a delivery shows it. */
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

/** @returns the objects of a list's page, or the object itself. */
function objectsOf(answer: unknown): JsonObject[] {
  if (!isObject(answer)) return [];
  for (const value of Object.values(answer)) if (Array.isArray(value)) return value.filter(isObject);
  return [answer];
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

/** @returns null if the object is not an event. */
export function eventOf(value: unknown, from: Evidence): EventFact | null {
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
    from,
  };
}

/** The id of the object that a path names: `/v1/rooms/room_1` names `room_1`; null for a list or an action. */
export function namedBy(path: string): string | null {
  const last = (path.split('?')[0] ?? '').split('/').at(-1) ?? '';
  return /^[a-z]+_\w+$/.test(last) ? last : null;
}

/** Every id in a path. */
export function idsIn(path: string): string[] {
  return (path.split('?')[0] ?? '').split('/').filter((part) => /^[a-z]+_\w+$/.test(part));
}

/** The events of the final reads, by id. */
export function finalEvents({ requests }: History): Map<string, EventFact> {
  const events = new Map<string, EventFact>();
  for (const request of requests) {
    if (request.phase !== 'final' || !isSuccess(request) || !request.path.startsWith('/v1/events')) continue;
    for (const value of objectsOf(request.answer)) {
      const event = eventOf(value, requestEvidence(request));
      if (event !== null) events.set(event.id, event);
    }
  }
  return events;
}

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

/** Whether the final reads have an end: what they do not show is not there. */
export function hasReadAll({ marks }: History): boolean {
  return marks.some(({ mark }) => mark === 'final reads ended');
}
