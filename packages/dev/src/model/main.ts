/**
 * `npm run model`: checks the specifications of the folder `specs` with larger bounds than `npm test`.
 * `npm run model -- --quick`: what `npm test` checks, as JSON.
 * `npm run model -- --trace FILE…`: checks the transitions in logs (JSON lines, LOG_LEVEL=debug) against them.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { randomFrom } from '@callplane/local-servers';
import { Failure } from '../bootstrap.js';
import { exploreAll, walkAtRandom, type Exploration } from './explore.js';
import { MODEL_INVARIANTS, type SpecFile } from './invariants.js';
import { checkQuickly } from './quick-check.js';
import { readSource } from './spec.js';
import { compareLogs } from './compare-logs.js';

/** Modules whose states are all examined, and modules with larger bounds, of which random walks examine a part. */
const MODULES: Record<SpecFile, { all: string[]; walked: string[] }> = {
  'leases.qnt': {
    all: ['operations', 'deliveries', 'lines', 'moreOperations', 'moreDeliveries', 'moreLines'],
    walked: [],
  },
  'sessions.qnt': { all: ['smallRooms', 'resumptions', 'moreRooms'], walked: ['rooms'] },
};
/** More than the largest module of `all` has. */
const STATES_MAX = 50_000;

export function main(args: readonly string[]): void {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      trace: { type: 'boolean', default: false },
      killed: { type: 'string', default: '0' },
      walks: { type: 'string', default: '300' },
      seed: { type: 'string', default: '1' },
    },
  });
  if (values.quick) {
    console.log(JSON.stringify(checkQuickly()));
    return;
  }
  const [walks, seed, killed] = (['walks', 'seed', 'killed'] as const).map((name) => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 0)
      throw new Failure(`--${name} must be a whole number, not "${values[name]}"`);
    return value;
  }) as [number, number, number];
  const failures = values.trace ? compare(positionals, killed) : check(walks, seed);
  if (failures > 0) throw new Failure(`The model found ${failures} violations.`);
}

function check(walks: number, seed: number): number {
  const found: Exploration[] = [];
  for (const [file, { all, walked }] of Object.entries(MODULES) as [SpecFile, (typeof MODULES)[SpecFile]][]) {
    const source = readSource(file);
    for (const error of source.typeErrors()) throw new Failure(`${file}: ${error}`);
    const invariants = MODEL_INVARIANTS[file];
    for (const module of all) {
      const explored = report(module, exploreAll(source.open(module), invariants, STATES_MAX));
      if (explored.violation === null && !explored.isExhaustive)
        throw new Failure(`${module} has more than ${STATES_MAX} states: its bounds must be smaller to examine all.`);
      found.push(explored);
    }
    for (const module of walked) {
      const settings = { walks, movesMax: 60, random: randomFrom(seed) };
      found.push(report(module, walkAtRandom(source.open(module), invariants, settings)));
    }
  }
  return found.filter(({ violation }) => violation !== null).length;
}

function report(module: string, found: Exploration): Exploration {
  const { states, isExhaustive, violation } = found;
  console.log(
    `${module}: ${states} states${isExhaustive ? ', all that can be reached' : ', a part of those that can be reached'}`,
  );
  if (violation !== null) console.log(`  breaks ${violation.invariant}:\n  ${violation.moves.join('\n  ')}`);
  return found;
}

/** @returns the number of rows whose lines the model does not allow. */
function compare(files: readonly string[], killed: number): number {
  const logs = files.flatMap((file) => readFileSync(file, 'utf8').split('\n').flatMap(parsed));
  const { compared, refused } = compareLogs(logs, killed);
  const traces = Object.values(compared).reduce((sum, count) => sum + count, 0);
  if (traces === 0) {
    throw new Failure(
      'The logs have no row with its first attempt and no room with its first join. Apps log transitions at LOG_LEVEL=debug.',
    );
  }
  const { operation, delivery, line: lines, room } = compared;
  console.log(
    `${operation} operations, ${delivery} deliveries, ${lines} lines of deliveries in order, ${room} rooms: ` +
      `${refused.length} not allowed by the model`,
  );
  for (const { kind, of, allowed, line, isUndecided } of refused) {
    const how = isUndecided ? ' (the search ended at its bound)' : '';
    console.log(`${kind} ${of}: ${line.transition} after ${allowed} lines${how}: ${JSON.stringify(line)}`);
  }
  return refused.length;
}

function parsed(line: string): Record<string, unknown>[] {
  try {
    return line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : [];
  } catch {
    // Another program's line, or the last line of a killed process.
    return [];
  }
}
