import type { Spec, State, Step } from './spec.js';

/** A state that breaks an invariant, with the moves that lead to it. */
export interface Violation {
  invariant: string;
  moves: string[];
}

export interface Exploration {
  /** The number of different states that were examined. */
  states: number;
  /** Whether every reachable state was examined. */
  isExhaustive: boolean;
  violation: Violation | null;
  /** The names of the moves that were taken. */
  moves: Set<string>;
}

interface Node {
  state: State;
  before: Node | null;
  move: Step['move'] | null;
}

/** The invariant that says that some further states lead to the end of all work. */
export const PROGRESS = 'progress';

/**
 * Examines the reachable states breadth first, so that a violation has the fewest moves. If it has examined all, it also
 * checks {@link PROGRESS}: from every state, a state in which `settled` holds can be reached.
 */
export function exploreAll(spec: Spec, invariants: readonly string[], statesMax: number): Exploration {
  const start: Node = { state: spec.initial, before: null, move: null };
  const nodes = [start];
  const indexOf = new Map([[start.state.key, 0]]);
  const sources: number[][] = [[]];
  const moves = new Set<string>();
  const done = (states: number, isExhaustive: boolean, violation: Violation | null): Exploration => ({
    states,
    isExhaustive,
    violation,
    moves,
  });
  for (let at = 0; at < nodes.length; at += 1) {
    if (at >= statesMax) return done(at, false, null);
    const node = nodes[at] as Node;
    const broken = firstBroken(spec, invariants, node.state);
    if (broken !== undefined) return done(at + 1, false, { invariant: broken, moves: path(node) });
    for (const { move, state } of spec.successors(node.state)) {
      moves.add(String(move['name']));
      let index = indexOf.get(state.key);
      if (index === undefined) {
        index = nodes.push({ state, before: node, move }) - 1;
        indexOf.set(state.key, index);
        sources.push([]);
      }
      sources[index]?.push(at);
    }
  }
  const stuck = firstStuck(spec, nodes, sources);
  return done(nodes.length, true, stuck === null ? null : { invariant: PROGRESS, moves: path(stuck) });
}

/** `safe` is the conjunction of all invariants: one evaluation decides most states. */
function firstBroken(spec: Spec, invariants: readonly string[], state: State): string | undefined {
  return spec.holds('safe', state) ? undefined : invariants.find((invariant) => !spec.holds(invariant, state));
}

/** Walks backwards from the settled states; a state that it does not meet cannot reach one. */
function firstStuck(spec: Spec, nodes: readonly Node[], sources: readonly number[][]): Node | null {
  const canSettle = nodes.map(({ state }) => spec.holds('settled', state));
  const queue = nodes.flatMap((_, at) => (canSettle[at] === true ? [at] : []));
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const source of sources[at] ?? []) {
      if (canSettle[source] === true) continue;
      canSettle[source] = true;
      queue.push(source);
    }
  }
  return nodes[canSettle.indexOf(false)] ?? null;
}

/** Takes random moves from the start, `walks` times, and checks the invariants after each move. */
export function walkAtRandom(
  spec: Spec,
  invariants: readonly string[],
  { walks, movesMax, random }: { walks: number; movesMax: number; random: () => number },
): Exploration {
  const moves = new Set<string>();
  const seen = new Set<string>();
  const done = (violation: Violation | null): Exploration => ({
    states: seen.size,
    isExhaustive: false,
    violation,
    moves,
  });
  for (let walk = 0; walk < walks; walk += 1) {
    let node: Node = { state: spec.initial, before: null, move: null };
    for (let taken = 0; taken < movesMax; taken += 1) {
      const steps = spec.successors(node.state);
      const step = steps[Math.floor(random() * steps.length)];
      if (step === undefined) break;
      node = { state: step.state, before: node, move: step.move };
      moves.add(String(step.move['name']));
      const { state } = node;
      if (seen.has(state.key)) continue;
      seen.add(state.key);
      const broken = firstBroken(spec, invariants, state);
      if (broken !== undefined) return done({ invariant: broken, moves: path(node) });
    }
  }
  return done(null);
}

function path(node: Node): string[] {
  const moves: string[] = [];
  for (let at: Node | null = node; at?.move != null; at = at.before) {
    const { name, ...fields } = at.move;
    moves.unshift(
      `${name}(${Object.entries(fields)
        .map(([field, value]) => `${field} ${value}`)
        .join(', ')})`,
    );
  }
  return moves;
}
