import { readTraces, TRACE_KINDS, type Trace, type TraceKind } from './read-traces.js';
import { readSource } from './spec.js';
import { TraceValidator, type Refusal } from './trace.js';

/** A supervisor or a simulation that kills a process may say so in a line with this message. */
export const KILLED = 'process killed';

export interface Comparison {
  /** The number of traces by kind. */
  compared: Record<TraceKind, number>;
  refused: Refusal[];
}

/**
 * Compares the transitions in logs with the specifications.
 * @param killed processes that were killed at an unknown time. The logs may have lines with the message
 *   {@link KILLED} for others.
 */
export function compareLogs(logs: Iterable<Readonly<Record<string, unknown>>>, killed: number): Comparison {
  const lines = [...logs];
  const deathsMs = [
    ...lines.flatMap(({ message, time }) => (message === KILLED ? Date.parse(String(time)) : [])).sort((a, b) => a - b),
    ...Array.from({ length: killed }, () => Infinity),
  ];
  const validators = new Map<string, TraceValidator>();
  const validatorOf = (trace: Trace): TraceValidator => {
    const { kind, size, places } = trace;
    const key = `${kind} ${size} ${places}`;
    const known = validators.get(key) ?? new TraceValidator(openFor(trace), { deathsMs });
    validators.set(key, known);
    return known;
  };
  const traces = readTraces(lines);
  const numbers = TRACE_KINDS.map((kind) => [kind, traces.filter((trace) => trace.kind === kind).length]);
  return {
    compared: Object.fromEntries(numbers) as Record<TraceKind, number>,
    refused: traces.flatMap((trace) => validatorOf(trace).validate(trace) ?? []),
  };
}

/** Opens the module of a trace, with as many rows, or as many participants and places, as the trace has. */
function openFor({ kind, size, places }: Trace): ReturnType<ReturnType<typeof readSource>['open']> {
  if (kind === 'operation') return readSource('leases.qnt').open('realOperation');
  if (kind === 'delivery') return readSource('leases.qnt').open('realDelivery');
  if (kind === 'line') return readSource('leases.qnt', replacing('ROWS = 12', `ROWS = ${size}`)).open('realLine');
  const bounds = `PEOPLE = 1.to(${size}), PLACES = ${places}`;
  return readSource('sessions.qnt', replacing('PEOPLE = 1.to(12), PLACES = 12', bounds)).open('realRooms');
}

function replacing(from: string, to: string): (text: string) => string {
  return (text) => {
    if (text.split(from).length !== 2) throw new Error(`the specification must contain this text once: ${from}`);
    return text.replace(from, to);
  };
}
