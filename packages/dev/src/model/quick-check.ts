import { randomFrom } from '@callplane/local-servers';
import { SEEDED_BUGS } from './bugs.js';
import { exploreAll, walkAtRandom, type Violation } from './explore.js';
import { MODEL_INVARIANTS, type SpecFile } from './invariants.js';
import { readSource } from './spec.js';

/** The checks of `npm test`: small modules, a few walks, and every seeded bug. */
export interface QuickResults {
  typeErrors: string[];
  explored: Record<string, { states: number; isExhaustive: boolean; violation: Violation | null }>;
  walked: Record<string, { states: number; violation: Violation | null }>;
  /** The scenarios of the specifications. */
  scenarios: { name: string; isPassed: boolean }[];
  /** What each seeded bug broke. */
  bugs: Record<string, Violation | null>;
}

const EXPLORED: [SpecFile, string][] = [
  ['leases.qnt', 'operations'],
  ['leases.qnt', 'deliveries'],
  ['sessions.qnt', 'resumptions'],
];
const WALKED: [SpecFile, string][] = [
  ['leases.qnt', 'lines'],
  ['sessions.qnt', 'rooms'],
];
const WALKS = { walks: 12, movesMax: 30 };
const SEED = 7;
const STATES_MAX = 3000;

export function checkQuickly(): QuickResults {
  const sources = { 'leases.qnt': readSource('leases.qnt'), 'sessions.qnt': readSource('sessions.qnt') };
  const explored = EXPLORED.map(([file, module]) => {
    const found = exploreAll(sources[file].open(module), MODEL_INVARIANTS[file], STATES_MAX);
    return [module, found] as const;
  });
  const walked = WALKED.map(([file, module]) => {
    const settings = { ...WALKS, random: randomFrom(SEED) };
    return [module, walkAtRandom(sources[file].open(module), MODEL_INVARIANTS[file], settings)] as const;
  });
  const bugs = SEEDED_BUGS.map(({ name, file, module, edit: [from, to] }) => {
    const source = readSource(file, (text) => {
      if (text.split(from).length !== 2) throw new Error(`${file} must contain this text once: ${from}`);
      return text.replace(from, to);
    });
    return [name, exploreAll(source.open(module), MODEL_INVARIANTS[file], STATES_MAX).violation] as const;
  });
  return {
    typeErrors: Object.values(sources).flatMap((source) => source.typeErrors()),
    scenarios: [
      ...sources['leases.qnt'].open('operations').scenarios(),
      ...sources['sessions.qnt'].open('smallRooms').scenarios(),
    ],
    explored: Object.fromEntries(explored),
    walked: Object.fromEntries(walked),
    bugs: Object.fromEntries(bugs),
  };
}
