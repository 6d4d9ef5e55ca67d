import type { Spec, State, Step } from './spec.js';

/** One line of the log with the message `transition` (packages/runtime/src/logging/transitions.ts). */
export interface TraceLine {
  transition: string;
  row: string;
  /** The transition was committed between these times, in milliseconds. */
  fromMs: number;
  toMs: number;
  lease: string | null;
  run: number | null;
  attempt: number | null;
  untilMs: number | null;
}

/** The lines of one row. */
export interface RowTrace {
  subject: 'operation' | 'delivery';
  row: string;
  lines: TraceLine[];
}

type Line = Readonly<Record<string, unknown>>;

/** Collects the transitions in the logs of all processes by row. Rows whose first attempt is not in the log are left out. */
export function readTraces(logs: Iterable<Line>): RowTrace[] {
  const traces = new Map<string, RowTrace>();
  for (const line of logs) {
    const { message, subject, row, transition, time, tookMs } = line;
    if (message !== 'transition' || typeof row !== 'string') continue;
    if (subject !== 'operation' && subject !== 'delivery') continue;
    const trace = traces.get(row) ?? { subject, row, lines: [] };
    traces.set(row, trace);
    const toMs = Date.parse(String(time));
    trace.lines.push({
      transition: String(transition),
      row,
      // Times in the log are whole milliseconds.
      fromMs: toMs - Math.ceil(Number(tookMs)) - 1,
      toMs: toMs + 1,
      lease: typeof line['lease'] === 'string' ? line['lease'] : null,
      run: numberOr(line['run']),
      attempt: numberOr(line['attempt']),
      untilMs: numberOr(line['untilMs']),
    });
  }
  const complete = ({ lines }: RowTrace): boolean =>
    lines.some(({ transition, run, attempt }) => transition === 'claim' && run === 1 && attempt === 1);
  for (const { lines } of traces.values()) lines.sort((a, b) => a.toMs - b.toMs);
  return [...traces.values()].filter(complete);
}

const numberOr = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/**
 * Moves that no line reports. Wake-ups are lost and found, time passes, and other programs accept and replay rows.
 * Moves that only take something away from a worker (`drop`, `loseWakeUp`) are never needed to explain a line.
 */
const SILENT = ['accept', 'scan', 'elapse', 'expire', 'rerun', 'replay'];
/** Moves that a process may have made without a line, because it was killed after the commit. */
const CUT_OFF = ['claim', 'complete', 'retry', 'fail', 'failOld', 'release'];
/** Silent moves between two lines: a row is accepted or replayed, found by a scan, and its lease or delay ends. */
const SILENT_MAX = 4;
/** Bound of the search of one row. Its lines overlap in time when processes work on it at once, which is rare. */
const NODES_MAX = 20_000;

export interface TraceSettings {
  /** How many moves a row may have made without a line: the number of processes that were killed. */
  cutOffMax: number;
}

/** Why the model does not allow the lines of a row. */
export interface Refusal {
  row: string;
  /** The lines that the model allows before the refused one. */
  allowed: number;
  line: TraceLine;
}

interface Node {
  state: State;
  /** The model's tokens of the leases in the log. */
  leases: ReadonlyMap<string, number>;
  done: ReadonlySet<number>;
  silent: number;
  cutOff: number;
  /** The next line was written at or after this time. */
  notBeforeMs: number;
  expiresAtMs: number;
  elapsesAtMs: number;
}

/**
 * Checks whether the model allows the lines of a row, in some order that their times allow: a line stands for a commit
 * between `fromMs` and `toMs`.
 */
export class TraceValidator {
  readonly #spec: Spec;
  readonly #settings: TraceSettings;
  /** Rows with the same history have equal states. */
  readonly #successors = new Map<string, Step[]>();

  /** @param spec `realOperation` or `realDelivery`. */
  constructor(spec: Spec, settings: TraceSettings) {
    this.#spec = spec;
    this.#settings = settings;
  }

  /** @returns null if the model allows the lines. */
  validate({ row, lines }: RowTrace): Refusal | null {
    const first: Node = {
      state: this.#spec.initial,
      leases: new Map(),
      done: new Set(),
      silent: 0,
      cutOff: 0,
      notBeforeMs: -Infinity,
      expiresAtMs: -Infinity,
      elapsesAtMs: -Infinity,
    };
    const stack = [first];
    const seen = new Set<string>();
    let best = first;
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node.done.size === lines.length) return null;
      if (node.done.size > best.done.size) best = node;
      const key = keyOf(node);
      if (seen.has(key)) continue;
      if (seen.size >= NODES_MAX) throw new Error(`${row}: the search ended after ${NODES_MAX} steps`);
      seen.add(key);
      // The last one is tried first: lines before moves without one.
      stack.push(...this.#withoutLine(node), ...this.#withLine(node, lines));
    }
    const at = candidates(lines, best.done)[0] ?? 0;
    return { row, allowed: best.done.size, line: lines[at] as TraceLine };
  }

  #next(state: State): Step[] {
    let steps = this.#successors.get(state.key);
    if (steps === undefined) {
      steps = this.#spec.successors(state);
      this.#successors.set(state.key, steps);
    }
    return steps;
  }

  #withLine(node: Node, lines: readonly TraceLine[]): Node[] {
    return candidates(lines, node.done)
      .reverse()
      .flatMap((at) => {
        const line = lines[at] as TraceLine;
        if (line.toMs < node.notBeforeMs) return [];
        return this.#next(node.state).flatMap((step) => {
          const leases = leasesAfter(node.leases, line, step);
          return leases === null ? [] : [afterLine(node, at, line, step.state, leases)];
        });
      });
  }

  #withoutLine(node: Node): Node[] {
    if (node.silent >= SILENT_MAX) return [];
    return this.#next(node.state).flatMap(({ move, state }): Node[] => {
      const name = String(move['name']);
      const moved = { ...node, state, silent: node.silent + 1 };
      if (name === 'expire') return [{ ...moved, notBeforeMs: Math.max(node.notBeforeMs, node.expiresAtMs) }];
      if (name === 'elapse') return [{ ...moved, notBeforeMs: Math.max(node.notBeforeMs, node.elapsesAtMs) }];
      if (SILENT.includes(name)) return [moved];
      if (!CUT_OFF.includes(name) || node.cutOff >= this.#settings.cutOffMax) return [];
      return [{ ...moved, cutOff: node.cutOff + 1, leases: unbound(node.leases, Number(move['token'])) }];
    });
  }
}

/** The lines that may be next: no other line ended before they began. */
function candidates(lines: readonly TraceLine[], done: ReadonlySet<number>): number[] {
  const open = lines.flatMap((_, at) => (done.has(at) ? [] : [at]));
  const firstEndMs = Math.min(...open.map((at) => (lines[at] as TraceLine).toMs));
  return open.filter((at) => (lines[at] as TraceLine).fromMs <= firstEndMs);
}

/** @returns null if the step is not what the line says. */
function leasesAfter(
  leases: ReadonlyMap<string, number>,
  { transition, lease, run, attempt }: TraceLine,
  { move }: Step,
): ReadonlyMap<string, number> | null {
  if (move['name'] !== transition) return null;
  if (run !== null && run !== move['runNo']) return null;
  if (attempt !== null && attempt !== move['attempt']) return null;
  if (lease === null) return leases;
  const token = Number(move['token']);
  if (transition === 'claim') return leases.has(lease) ? null : new Map([...unbound(leases, token), [lease, token]]);
  return leases.get(lease) === token ? leases : null;
}

/** The model uses the number of a token again once no worker remembers it. */
function unbound(leases: ReadonlyMap<string, number>, token: number): Map<string, number> {
  return new Map([...leases].filter(([, other]) => other !== token));
}

function afterLine(
  node: Node,
  at: number,
  { transition, fromMs, untilMs }: TraceLine,
  state: State,
  leases: ReadonlyMap<string, number>,
): Node {
  const endsAtMs = fromMs + (untilMs ?? 0);
  return {
    state,
    leases,
    done: new Set([...node.done, at]),
    silent: 0,
    cutOff: node.cutOff,
    notBeforeMs: -Infinity,
    expiresAtMs: transition === 'claim' ? endsAtMs : node.expiresAtMs,
    elapsesAtMs: transition === 'claim' ? node.elapsesAtMs : endsAtMs,
  };
}

function keyOf({ state, leases, done, silent, cutOff, notBeforeMs }: Node): string {
  return [state.key, [...leases].join(), [...done].sort().join(), silent, cutOff, notBeforeMs].join('|');
}
