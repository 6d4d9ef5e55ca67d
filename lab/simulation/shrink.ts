import type { Plan } from './plan.js';
import { CALM } from './ports/redis.js';
import type { Outcome } from './run.js';

/** Runs that look for a shorter plan. */
const TRIES_MAX = 80;

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
