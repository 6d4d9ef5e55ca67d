import type { Trace, TraceLine } from './read-traces.js';
import type { Spec, State, Step } from './spec.js';
import { TRACE_RULES, type Names, type TraceRules } from './trace-rules.js';

/** Silent moves between two lines: a row is accepted or replayed, found by a scan, and its lease or delay ends. */
const SILENT_MAX = 4;
/** Bound of the search of one trace. Its lines overlap in time when processes work on it at once, which is rare. */
const NODES_MAX = 20_000;

/** Why the model does not allow the lines of a trace. */
export interface Refusal {
  kind: Trace['kind'];
  of: string;
  /** The lines that the model allows before the refused one. */
  allowed: number;
  line: TraceLine;
}

type Times = ReadonlyMap<number, number>;

interface Node {
  state: State;
  names: Names;
  done: ReadonlySet<number>;
  silent: number;
  /** The deaths before which a move without a line was committed. */
  deaths: ReadonlySet<number>;
  /** The latest begin of a line so far. */
  begunMs: number;
  /** By row: the next line about it was written at or after this time. */
  notBeforeMs: Times;
  /** By row: when its lease and its delay end. */
  expiresAtMs: Times;
  elapsesAtMs: Times;
  /** By session: when its connection was lost. */
  lostAtMs: Times;
}

interface NextLine {
  at: number;
  line: TraceLine;
}

const NOTHING: ReadonlyMap<never, number> = new Map<never, number>();

/**
 * Checks whether the model allows the lines of a trace, in some order that their times and versions allow: a line stands
 * for a commit between `fromMs` and `toMs`, and the transitions of a room commit in the order of their versions.
 */
export class TraceValidator {
  readonly #spec: Spec;
  /** Traces with the same history have equal states. */
  readonly #successors = new Map<string, Step[]>();

  constructor(spec: Spec) {
    this.#spec = spec;
  }

  /**
   * @param deathsMs when processes were killed, in milliseconds; Infinity if it is not known. Each may have committed one
   *   move of the trace before, and not logged it.
   * @returns null if the model allows the lines.
   */
  validate({ kind, of, size, lines }: Trace, deathsMs: readonly number[]): Refusal | null {
    const rules = TRACE_RULES[kind];
    const first: Node = {
      state: kind === 'line' ? this.#accepted(size) : this.#spec.initial,
      names: NOTHING,
      done: new Set(),
      silent: 0,
      deaths: new Set(),
      begunMs: -Infinity,
      notBeforeMs: NOTHING,
      expiresAtMs: NOTHING,
      elapsesAtMs: NOTHING,
      lostAtMs: NOTHING,
    };
    const stack = [first];
    const seen = new Set<string>();
    let best = first;
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node.done.size === lines.length) return null;
      if (node.done.size > best.done.size) best = node;
      const key = keyOf(node);
      if (seen.has(key)) continue;
      if (seen.size >= NODES_MAX) throw new Error(`${of}: the search ended after ${NODES_MAX} steps`);
      seen.add(key);
      const next = candidates(lines, node.done).map((at) => ({ at, line: lines[at] as TraceLine }));
      const death = deathsMs.findIndex((atMs, index) => atMs >= node.begunMs && !node.deaths.has(index));
      // The last one is tried first: lines before moves without one.
      stack.push(...this.#withoutLine(node, next, rules, death), ...this.#withLine(node, next, rules));
    }
    const at = candidates(lines, best.done)[0] ?? 0;
    return { kind, of, allowed: best.done.size, line: lines[at] as TraceLine };
  }

  /** The deliveries of a line are accepted in their order, so those that are in the trace block only later ones. */
  #accepted(rows: number): State {
    let state = this.#spec.initial;
    for (let row = 1; row <= rows; row += 1) {
      state = this.#next(state).find(({ move }) => move['name'] === 'accept' && move['row'] === row)?.state ?? state;
    }
    return state;
  }

  #next(state: State): Step[] {
    let steps = this.#successors.get(state.key);
    if (steps === undefined) {
      steps = this.#spec.successors(state);
      this.#successors.set(state.key, steps);
    }
    return steps;
  }

  #withLine(node: Node, next: readonly NextLine[], rules: TraceRules): Node[] {
    return next.toReversed().flatMap(({ at, line }) => {
      if (line.toMs < (node.notBeforeMs.get(line.index ?? 0) ?? -Infinity)) return [];
      return this.#next(node.state).flatMap((step) => {
        const names = rules.after(node.names, line, step);
        return names === null || isTooEarly(node, line, step) ? [] : [afterLine(node, at, line, step, names)];
      });
    });
  }

  /** @param death the index of one before which a move may have been made; -1 without one. */
  #withoutLine(node: Node, next: readonly NextLine[], rules: TraceRules, death: number): Node[] {
    if (node.silent >= SILENT_MAX) return [];
    return this.#next(node.state).flatMap(({ move, state }): Node[] => {
      const moved = { ...node, state, silent: node.silent + 1 };
      const row = Number(move['row']);
      if (next.some(({ line }) => rules.precedes(move, line))) {
        const after = { expire: node.expiresAtMs, elapse: node.elapsesAtMs }[String(move['name'])]?.get(row);
        if (after === undefined) return [moved];
        const notBeforeMs = Math.max(after, node.notBeforeMs.get(row) ?? -Infinity);
        return [{ ...moved, notBeforeMs: new Map([...node.notBeforeMs, [row, notBeforeMs]]) }];
      }
      if (death < 0 || !rules.mayBeCutOff(move)) return [];
      return [{ ...moved, deaths: new Set([...node.deaths, death]), names: rules.afterCutOff(node.names, move) }];
    });
  }
}

/** The lines that may be next: no other line ended before they began, and none has an earlier version. */
function candidates(lines: readonly TraceLine[], done: ReadonlySet<number>): number[] {
  const open = lines.flatMap((_, at) => (done.has(at) ? [] : [at]));
  const firstEndMs = Math.min(...open.map((at) => (lines[at] as TraceLine).toMs));
  const versioned = open.flatMap((at) => lines[at]?.version ?? []);
  const firstVersion = versioned.length === 0 ? null : Math.min(...versioned);
  const firstOfVersion = open.find((at) => lines[at]?.version === firstVersion);
  return open.filter((at) => {
    const { fromMs, version } = lines[at] as TraceLine;
    // A batch gives all its joins one version, in the order of their lines.
    return fromMs <= firstEndMs && (version === null || at === firstOfVersion);
  });
}

/** A session is not lost before its grace is over. */
function isTooEarly({ lostAtMs }: Node, { graceMs, toMs }: TraceLine, { move }: Step): boolean {
  return graceMs !== null && toMs < (lostAtMs.get(Number(move['session'])) ?? -Infinity) + graceMs;
}

function afterLine(
  node: Node,
  at: number,
  { transition, fromMs, untilMs, index }: TraceLine,
  { move, state }: Step,
  names: Names,
): Node {
  const row = index ?? 0;
  const ends = new Map([[row, fromMs + (untilMs ?? 0)]]);
  const session = Number(move['session']);
  const { notBeforeMs, expiresAtMs, elapsesAtMs, lostAtMs } = node;
  return {
    state,
    names,
    done: new Set([...node.done, at]),
    silent: 0,
    deaths: node.deaths,
    begunMs: Math.max(node.begunMs, fromMs),
    notBeforeMs: new Map([...notBeforeMs].filter(([other]) => other !== row)),
    expiresAtMs: transition === 'claim' ? new Map([...expiresAtMs, ...ends]) : expiresAtMs,
    elapsesAtMs: transition === 'claim' ? elapsesAtMs : new Map([...elapsesAtMs, ...ends]),
    lostAtMs: lostAfter(lostAtMs, transition, session, fromMs),
  };
}

function lostAfter(lostAtMs: Times, transition: string, session: number, atMs: number): Times {
  if (transition === 'disconnect') return new Map([...lostAtMs, [session, atMs]]);
  return transition === 'resume' ? new Map([...lostAtMs].filter(([other]) => other !== session)) : lostAtMs;
}

function keyOf({ state, names, done, silent, deaths, notBeforeMs }: Node): string {
  return [
    state.key,
    [...names].join(),
    [...done].sort().join(),
    silent,
    [...deaths].join(),
    [...notBeforeMs].join(),
  ].join('|');
}
