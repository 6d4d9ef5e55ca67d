/**
 * `npm run bench [-- rest …]`: measures the built apps on servers of its own and prints ratios against a floor that is
 * measured in the same run. Nothing is asserted; docs/benchmarks.md holds what was seen.
 */
import { bootstrap } from './lib/bootstrap.mjs';
import { explain } from './lib/failure.mjs';

/** @type {Record<string, () => Promise<{ run(): Promise<void> }>>} */
const BENCHMARKS = {
  rest: () => import('./bench/rest.mjs'),
  deliveries: () => import('./bench/deliveries.mjs'),
  signaling: () => import('./bench/signaling.mjs'),
  growth: () => import('./bench/growth.mjs'),
};

try {
  await bootstrap({ say: (line) => console.log(line), programs: ['redis-server', 'janus'] });
  const chosen = process.argv.slice(2);
  for (const [name, load] of Object.entries(BENCHMARKS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    console.log(`\n## ${name}\n`);
    await (await load()).run();
  }
} catch (error) {
  explain(error);
  process.exitCode = 1;
}
