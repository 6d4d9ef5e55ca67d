import { replaceGlobals, real } from './globals.js';
import { planOf } from './plan.js';
import { Postgres } from './ports/postgres.js';
import { currentWorld, preparePrisma, simulate, type Outcome } from './run.js';

replaceGlobals(currentWorld);

const [url = '', first = '1', last = first] = process.argv.slice(2);
preparePrisma(url);
const postgres = await Postgres.open(url);
for (let seed = Number(first); seed <= Number(last); seed += 1) {
  const began = real.now();
  const outcome: Outcome = await simulate(postgres, url, planOf(seed));
  const { violations, hash, steps, statements, simulatedMs, crashes } = outcome;
  const ms = Math.round(real.now() - began);
  console.log(
    `seed ${seed}: ${hash}, ${steps} steps, ${statements} statements, ${Math.round(simulatedMs / 1000)} s simulated, ${crashes} crashes, ${ms} ms`,
  );
  for (const { name, detail } of violations) console.log(`  BROKEN ${name}: ${detail}`);
  if (process.env['TRACE'] !== undefined) console.log(outcome.trace.join('\n'));
}
await postgres.close();
