/** One line of the log with the message `transition` (packages/runtime/src/logging/transitions.ts). */
export interface TraceLine {
  transition: string;
  /** The id of an operation, a delivery or a room. */
  row: string;
  /** The transition was committed between these times, in milliseconds. */
  fromMs: number;
  toMs: number;
  /** The lease or the session, whose numbers in the model become known with the line that makes it. */
  name: string | null;
  /** The number of the row or the participant in the model; null if the line does not say it. */
  index: number | null;
  run: number | null;
  attempt: number | null;
  connection: number | null;
  /** The place among the transitions of a room. */
  version: number | null;
  untilMs: number | null;
  graceMs: number | null;
}

export const TRACE_KINDS = ['operation', 'delivery', 'line', 'room'] as const;
/** What is compared as one: a row, the deliveries of a room to an endpoint in order, or the sessions of a room. */
export type TraceKind = (typeof TRACE_KINDS)[number];

export interface Trace {
  kind: TraceKind;
  /** The row, the endpoint and the room, or the room. */
  of: string;
  /** The number of rows or participants. */
  size: number;
  /** `maxParticipants` of the room, the largest one if it was changed. */
  places: number;
  lines: TraceLine[];
}

type Line = Readonly<Record<string, unknown>>;
type Subject = 'operation' | 'delivery' | 'session';

/** The deliveries of a line that are compared at once. Longer lines are compared in parts that overlap by half. */
const ROWS_MAX = 6;
/** Rooms with more participants or lines are left out, because the model needs too long for them. */
const PARTICIPANTS_MAX = 12;
const LINES_MAX = 200;

/**
 * Collects the transitions in the logs of all processes. Rows whose first attempt and rooms whose first change is not in
 * the logs are left out, and so are large rooms.
 */
export function readTraces(logs: Iterable<Line>): Trace[] {
  const rows: Record<Subject, Map<string, Line[]>> = { operation: new Map(), delivery: new Map(), session: new Map() };
  for (const line of logs) {
    const { message, subject, row } = line;
    if (message !== 'transition' || typeof row !== 'string') continue;
    const ofSubject = (rows as Record<string, Map<string, Line[]> | undefined>)[String(subject)];
    if (ofSubject === undefined) continue;
    addTo(ofSubject, row, line);
  }
  const complete = ([, lines]: [string, Line[]]): boolean =>
    lines.some(({ transition, run, attempt }) => transition === 'claim' && run === 1 && attempt === 1);
  const [operations, deliveries] = [[...rows.operation].filter(complete), [...rows.delivery].filter(complete)];
  return [
    ...operations.map(([row, lines]) => rowTrace('operation', row, lines)),
    ...deliveries.map(([row, lines]) => rowTrace('delivery', row, lines)),
    ...lineTraces(deliveries),
    ...[...rows.session].flatMap(([room, lines]) => roomTrace(room, lines)),
  ];
}

function rowTrace(kind: 'operation' | 'delivery', row: string, lines: readonly Line[]): Trace {
  return { kind, of: row, size: 1, places: 0, lines: inTime(lines.map((line) => toLine(line, 1))) };
}

/** The traces of deliveries that were all claimed in order, by endpoint and room. */
function lineTraces(deliveries: readonly [string, Line[]][]): Trace[] {
  const byLine = new Map<string, { row: string; sequence: number; lines: Line[] }[]>();
  for (const [row, lines] of deliveries) {
    const claims = lines.filter(({ transition }) => transition === 'claim');
    if (!claims.every(({ endpoint, room }) => typeof endpoint === 'string' && typeof room === 'string')) continue;
    const of = `${String(claims[0]?.['endpoint'])} ${String(claims[0]?.['room'])}`;
    addTo(byLine, of, { row, sequence: Number(claims[0]?.['sequence']), lines });
  }
  return [...byLine].flatMap(([of, rows]) => {
    rows.sort((a, b) => a.sequence - b.sequence);
    const traces: Trace[] = [];
    for (let from = 0; from === 0 || from + ROWS_MAX / 2 < rows.length; from += ROWS_MAX / 2) {
      const part = rows.slice(from, from + ROWS_MAX);
      const lines = inTime(part.flatMap((each, at) => each.lines.map((line) => toLine(line, at + 1))));
      if (part.length > 1) traces.push({ kind: 'line', of, size: part.length, places: 0, lines });
    }
    return traces;
  });
}

function roomTrace(room: string, logged: readonly Line[]): Trace[] {
  const people = [...new Set(logged.map(({ participant }) => participant))].filter((id) => typeof id === 'string');
  if (people.length > PARTICIPANTS_MAX || logged.length > LINES_MAX) return [];
  // The first change of a room: a join, or the end of a room without participants.
  if (!logged.some(({ version }) => version === 1)) return [];
  const named = logged.filter(({ participant }) => participant !== undefined);
  const personOf = new Map(named.map(({ session, participant }) => [session, participant]));
  const lines = logged.map((line) => {
    const { participant, session } = line;
    const index = people.indexOf(String(participant ?? (session === undefined ? '' : personOf.get(session)))) + 1;
    return toLine(line, index === 0 ? null : index);
  });
  const places = Math.max(1, ...logged.map((line) => numberOr(line['places']) ?? 0));
  return [{ kind: 'room', of: room, size: people.length, places, lines: inTime(lines) }];
}

function toLine(line: Line, index: number | null): TraceLine {
  const toMs = Date.parse(String(line['time']));
  const name = line['session'] ?? line['lease'];
  return {
    transition: String(line['transition']),
    row: String(line['row']),
    // Times in the log are whole milliseconds.
    fromMs: toMs - Math.ceil(Number(line['tookMs'])) - 1,
    toMs: toMs + 1,
    name: typeof name === 'string' ? name : null,
    index,
    run: numberOr(line['run']),
    attempt: numberOr(line['attempt']),
    connection: numberOr(line['connection']),
    version: numberOr(line['version']),
    untilMs: numberOr(line['untilMs']),
    graceMs: numberOr(line['graceMs']),
  };
}

function addTo<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}

const numberOr = (value: unknown): number | null => (typeof value === 'number' ? value : null);

function inTime(lines: TraceLine[]): TraceLine[] {
  return lines.sort((a, b) => a.toMs - b.toMs);
}
