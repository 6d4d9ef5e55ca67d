import type { TraceKind, TraceLine } from './read-traces.js';
import type { Step } from './spec.js';

type Move = Step['move'];
/** The model's numbers of the leases or sessions that the lines name. */
export type Names = ReadonlyMap<string, number>;

/** How the lines of a trace and the moves of its specification belong together. */
export interface TraceRules {
  /** Whether a move that no line reports may be needed before this line. */
  precedes(move: Move, line: TraceLine): boolean;
  /** Whether a process may have made the move without a line, because it was killed after the commit. */
  mayBeCutOff(move: Move): boolean;
  /** Whether a move that no line reports may be needed before such a move. */
  mayBeginCutOff(move: Move): boolean;
  /** @returns the names after the line; null if the step is not what the line says. */
  after(names: Names, line: TraceLine, step: Step): Names | null;
  /** @returns the names after a move that has no line. */
  afterCutOff(names: Names, move: Move): Names;
}

/**
 * Moves of rows that no line reports: time passes, and programs without a log accept and replay rows. A wake-up is
 * never lost in the search, so a scan is never needed, and neither is parking.
 */
const SILENT_ROW_MOVES = ['accept', 'elapse', 'expire', 'rerun', 'replay'];
const CUT_OFF_ROW_MOVES = [
  'claim',
  'complete',
  'retry',
  'fail',
  'failOld',
  'release',
  'retryNow',
  'endLease',
  'endExhausted',
  'expireRun',
];

const LEASES: TraceRules = {
  precedes: ({ name, row }, { index }) => SILENT_ROW_MOVES.includes(String(name)) && row === index,
  mayBeCutOff: ({ name }) => CUT_OFF_ROW_MOVES.includes(String(name)),
  mayBeginCutOff: () => false,
  after(names, { transition, index, name, run, attempt }, { move }) {
    if (move['name'] !== transition || move['row'] !== index) return null;
    if (run !== null && run !== move['runNo']) return null;
    if (attempt !== null && attempt !== move['attempt']) return null;
    if (name === null) return names;
    const token = Number(move['token']);
    if (transition === 'claim') return names.has(name) ? null : new Map([...without(names, token), [name, token]]);
    return names.get(name) === token ? names : null;
  },
  afterCutOff: (names, move) => without(names, Number(move['token'])),
};

/** The model uses the number of a token again once no worker remembers it. */
function without(names: Names, token: number): Names {
  return new Map([...names].filter(([, other]) => other !== token));
}

/** Moves of sessions that no line reports, and the transitions before which they are needed. */
const SILENT_SESSION_MOVES: Readonly<Record<string, readonly string[]>> = {
  arrive: ['join', 'supersede'],
  drop: ['endLost'],
  findLost: ['endLost'],
  findAbsent: ['completeRemoval'],
  findEmpty: ['completeEnd'],
};
/** Moves that a process may commit and, if it is killed at that moment, not log. */
const CUT_OFF_SESSION_MOVES = [
  'join',
  'supersede',
  'resume',
  'disconnect',
  'leave',
  'endLost',
  'acceptRemoval',
  'remove',
  'endOfRoom',
];
const BEGINNINGS = ['join', 'supersede'];

const SESSIONS: TraceRules = {
  precedes: ({ name, who }, { transition, index }) =>
    SILENT_SESSION_MOVES[String(name)]?.includes(transition) === true && (who === index || index === null),
  mayBeCutOff: ({ name }) => CUT_OFF_SESSION_MOVES.includes(String(name)),
  mayBeginCutOff: ({ name }) => name === 'arrive',
  after(names, { transition, index, name, connection }, { move }) {
    if (move['name'] !== transition) return null;
    if (index !== null && index !== move['who']) return null;
    if (connection !== null && connection !== move['connection']) return null;
    if (name === null) return names;
    const session = Number(move['session']);
    const known = names.get(name);
    if (known !== undefined) return known === session && !BEGINNINGS.includes(transition) ? names : null;
    // The line of its join was cut off.
    return [...names.values()].includes(session) ? null : new Map([...names, [name, session]]);
  },
  afterCutOff: (names) => names,
};

export const TRACE_RULES: Readonly<Record<TraceKind, TraceRules>> = {
  operation: LEASES,
  delivery: LEASES,
  line: LEASES,
  room: SESSIONS,
};
