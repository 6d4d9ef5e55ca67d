import type { Trace, TraceLine } from './read-traces.js';
import type { Spec, State, Step } from './spec.js';
import { candidates, isAcceptanceMissing, isVersionMissing } from './trace-order.js';
import { TRACE_RULES, type Names, type TraceRules } from './trace-rules.js';

/** Silent moves between two lines: a row is accepted or replayed, found by a scan, and its lease or delay ends. */
const SILENT_MAX = 4;
/** Bound of the search of one trace. A trace that the model allows needs little more than one step for each line. */
const NODES_MAX = 5000;

/** Why the model does not allow the lines of a trace. */
export interface Refusal {
  kind: Trace['kind'];
  of: string;
  /** The lines that the model allows before the refused one. */
  allowed: number;
  line: TraceLine;
  /** Whether the search ended at its bound, so that an order may exist which it has not tried. */
  isUndecided: boolean;
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
  /** By session: the line that says that its connection was lost. */
  lost: ReadonlyMap<number, TraceLine>;
}

interface Search {
  lines: readonly TraceLine[];
  rules: TraceRules;
  deathsMs: readonly number[];
  /** The node with the most lines so far. */
  best: Node;
  nodes: number;
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
      lost: new Map(),
    };
    const search: Search = { lines, rules: TRACE_RULES[kind], deathsMs, best: first, nodes: 0 };
    // Few traces have a move without a line, and each one that may be anywhere multiplies the orders.
    let isMore = true;
    for (let cutOffs = 0; isMore && cutOffs <= deathsMs.length; cutOffs += 1) {
      const found = this.#search(search, first, cutOffs);
      if (found === 'allowed') return null;
      isMore = found === 'more' && search.nodes < NODES_MAX;
    }
    const at = candidates(lines, search.best.done)[0] ?? 0;
    const isUndecided = search.nodes >= NODES_MAX;
    return { kind, of, allowed: search.best.done.size, line: lines[at] as TraceLine, isUndecided };
  }

  /**
   * Searches an order in which at most this many moves have no line because of a death.
   * @returns more if a larger number may help.
   */
  #search(search: Search, first: Node, cutOffsMax: number): 'allowed' | 'more' | 'refused' {
    const { lines, rules, deathsMs } = search;
    const stack = [first];
    const seen = new Set<string>();
    let isMore = false;
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node.done.size === lines.length) return 'allowed';
      if (node.done.size > search.best.done.size) search.best = node;
      const key = keyOf(node);
      if (seen.has(key)) continue;
      seen.add(key);
      search.nodes += 1;
      if (search.nodes >= NODES_MAX) return 'more';
      const next = candidates(lines, node.done).map((at) => ({ at, line: lines[at] as TraceLine }));
      const { deaths, begunMs } = node;
      const mayMiss = isVersionMissing(lines, node.done) || isAcceptanceMissing(lines, node.done);
      const death = mayMiss ? deathsMs.findIndex((atMs, index) => atMs >= begunMs && !deaths.has(index)) : -1;
      const isLast = deaths.size === cutOffsMax;
      isMore ||= death >= 0 && isLast;
      const after = next.toReversed().flatMap((one) => this.#withLine(node, one, rules));
      const possible = new Set(after.map(({ at }) => at));
      const blocked = next.filter(({ at }) => !possible.has(at));
      // The last one is tried first: lines before moves without one.
      if (death >= 0 && !isLast) stack.push(...this.#cutOff(node, rules, death));
      stack.push(...this.#silently(node, blocked, rules), ...after.map((one) => one.node));
    }
    return isMore ? 'more' : 'refused';
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

  #withLine(node: Node, { at, line }: NextLine, rules: TraceRules): { at: number; node: Node }[] {
    if (line.toMs < (node.notBeforeMs.get(line.index ?? 0) ?? -Infinity)) return [];
    return this.#next(node.state).flatMap((step) => {
      const names = rules.after(node.names, line, step);
      const isAllowed = names !== null && !isTooEarly(node, line, step);
      return isAllowed ? [{ at, node: afterLine(node, at, line, step, names) }] : [];
    });
  }

  /** The moves that no line reports, and that prepare one of these lines, which are not possible without them. */
  #silently(node: Node, blocked: readonly NextLine[], rules: TraceRules): Node[] {
    if (node.silent >= SILENT_MAX || blocked.length === 0) return [];
    return this.#next(node.state).flatMap(({ move, state }): Node[] => {
      if (!blocked.some(({ line }) => rules.precedes(move, line))) return [];
      const moved = { ...node, state, silent: node.silent + 1 };
      const row = Number(move['row']);
      const after = { expire: node.expiresAtMs, elapse: node.elapsesAtMs }[String(move['name'])]?.get(row);
      if (after === undefined) return [moved];
      const notBeforeMs = Math.max(after, node.notBeforeMs.get(row) ?? -Infinity);
      return [{ ...moved, notBeforeMs: new Map([...node.notBeforeMs, [row, notBeforeMs]]) }];
    });
  }

  /** The moves that a process may have made before this death, which is why their lines are missing. */
  #cutOff(node: Node, rules: TraceRules, death: number): Node[] {
    const steps = this.#next(node.state);
    const begun = steps.filter(({ move }) => rules.mayBeginCutOff(move)).flatMap(({ state }) => this.#next(state));
    const deaths = new Set([...node.deaths, death]);
    return [...steps, ...begun].flatMap(({ move, state }): Node[] => {
      return rules.mayBeCutOff(move) ? [{ ...node, state, deaths, names: rules.afterCutOff(node.names, move) }] : [];
    });
  }
}

/**
 * Whether a sweep ends a session whose grace is not over. A sweep that began before the connection was lost has found
 * the session for another reason: no heartbeat of its gateway for the same time.
 */
function isTooEarly({ lost }: Node, { graceMs, fromMs, toMs }: TraceLine, { move }: Step): boolean {
  const loss = lost.get(Number(move['session']));
  return graceMs !== null && loss !== undefined && fromMs > loss.toMs && toMs < loss.fromMs + graceMs;
}

function afterLine(node: Node, at: number, line: TraceLine, { move, state }: Step, names: Names): Node {
  const { transition, fromMs, untilMs, index } = line;
  const row = index ?? 0;
  const ends = new Map([[row, fromMs + (untilMs ?? 0)]]);
  const session = Number(move['session']);
  const { notBeforeMs, expiresAtMs, elapsesAtMs, lost } = node;
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
    lost: lostAfter(lost, line, session),
  };
}

function lostAfter(lost: Node['lost'], line: TraceLine, session: number): Node['lost'] {
  if (line.transition === 'disconnect') return new Map([...lost, [session, line]]);
  return line.transition === 'resume' ? new Map([...lost].filter(([other]) => other !== session)) : lost;
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
