import type { Plan } from './plan.js';
import { CALM } from './ports/redis.js';
import type { Outcome } from './run.js';

const DULL =
  /^\S+ setup: |sweep taken over|sweeps|signaling_instances|media_nodes|pg_stat_activity|LATERAL|: (sends|gets) |BEGIN has|SELECT|has 0 rows$|lists rooms/;
const LINES_MAX = 160;
/** Runs that look for a shorter plan. */
const TRIES_MAX = 80;

/** The output of a failed run: the plan that is left, and the steps that changed something. */
export function failureReport(outcome: Outcome): string {
  const { plan, violations, trace } = outcome;
  const lines = trace.filter((line) => !DULL.test(line)).slice(-LINES_MAX);
  return [
    ...violations.map(({ name, detail }) => `BROKEN ${name}: ${detail}`),
    'The shortest plan that still breaks it:',
    `  weather: ${JSON.stringify(plan.weather)}`,
    ...plan.receivers.map((receiver, index) => `  receiver ${index}: ${JSON.stringify(receiver)}`),
    ...plan.faults.map((fault) => `  fault: ${JSON.stringify(fault)}`),
    ...plan.actions.map((action) => `  action: ${JSON.stringify(action)}`),
    'The interleaving, in seconds:',
    ...lines.map((line) => `  ${line}`),
    `Reproduce it with: npm run simulate -- --seed ${plan.seed}`,
  ].join('\n');
}

/** Leaves out parts of a plan while the same guarantee still breaks. */
export async function shrink(failed: Outcome, run: (plan: Plan) => Promise<Outcome>): Promise<Outcome> {
  const name = failed.violations[0]?.name;
  let best = failed;
  let tries = 0;
  const attempt = async (plan: Plan): Promise<boolean> => {
    if (tries >= TRIES_MAX) return false;
    tries += 1;
    const outcome = await run(plan);
    if (!outcome.violations.some((violation) => violation.name === name)) return false;
    best = outcome;
    return true;
  };
  if (best.plan.weather !== CALM) await attempt({ ...best.plan, weather: CALM });
  for (const list of ['faults', 'actions'] as const) {
    for (let size = Math.ceil(best.plan[list].length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let from = best.plan[list].length - size; from >= 0; from -= size) {
        const rest = best.plan[list].filter((_, at) => at < from || at >= from + size);
        await attempt({ ...best.plan, [list]: rest });
      }
    }
  }
  return best;
}

export class Coverage {
  readonly logged = new Set<string>();
  simulatedMs = 0;
  steps = 0;
  crashes = 0;
  runs = 0;

  add(outcome: Outcome): void {
    this.runs += 1;
    this.simulatedMs += outcome.simulatedMs;
    this.steps += outcome.steps;
    this.crashes += outcome.crashes;
    for (const kind of outcome.logged.keys()) this.logged.add(kind);
  }

  summary(): string {
    const hours = (this.simulatedMs / 3_600_000).toFixed(1);
    return (
      `${this.runs} runs, ${hours} h simulated, ${this.steps} steps, ${this.crashes} crashes, ` +
      `${this.logged.size} kinds of log lines`
    );
  }
}
