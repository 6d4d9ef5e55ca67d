import { readTraces, TRACE_KINDS, type Trace, type TraceKind } from './read-traces.js';
import { readSource, type Source, type Spec } from './spec.js';
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
  const traces = readTraces(lines);
  const numbers = TRACE_KINDS.map((kind) => [kind, traces.filter((trace) => trace.kind === kind).length]);
  return {
    compared: Object.fromEntries(numbers) as Record<TraceKind, number>,
    refused: traces.flatMap((trace) => validatorOf(trace).validate(trace, deathsMs) ?? []),
  };
}

/** By module and its numbers. It takes a second to open one. */
const validators = new Map<string, TraceValidator>();
/** The numbers of participants for which modules are opened. */
const SIZES = [2, 4, 8, 12];

function validatorOf({ kind, size, places }: Trace): TraceValidator {
  const module = moduleOf(kind, SIZES.find((number) => number >= size) ?? size, size <= places ? null : places);
  const key = JSON.stringify(module);
  const known = validators.get(key) ?? new TraceValidator(openModule(module));
  validators.set(key, known);
  return known;
}

interface Module {
  file: 'leases.qnt' | 'sessions.qnt';
  name: string;
  /** Replaces its numbers. */
  edit?: readonly [from: string, to: string];
}

/** @param places null if all participants have one. */
function moduleOf(kind: TraceKind, size: number, places: number | null): Module {
  if (kind === 'operation') return { file: 'leases.qnt', name: 'realOperation' };
  if (kind === 'delivery') return { file: 'leases.qnt', name: 'realDelivery' };
  if (kind === 'line') return { file: 'leases.qnt', name: 'realLine' };
  const numbers = `PEOPLE = 1.to(${size}), PLACES = ${places ?? size}`;
  return { file: 'sessions.qnt', name: 'realRooms', edit: ['PEOPLE = 1.to(12), PLACES = 12', numbers] };
}

/** To parse a specification takes most of the time of a short comparison. */
const sources = new Map<string, Source>();

function openModule({ file, name, edit }: Module): Spec {
  const key = `${file} ${edit?.[1] ?? ''}`;
  const source = sources.get(key) ?? readSource(file, (text) => edited(file, text, edit));
  sources.set(key, source);
  return source.open(name);
}

function edited(file: string, text: string, edit: Module['edit']): string {
  if (edit === undefined) return text;
  const [from, to] = edit;
  if (text.split(from).length !== 2) throw new Error(`${file} must contain this text once: ${from}`);
  return text.replace(from, to);
}
