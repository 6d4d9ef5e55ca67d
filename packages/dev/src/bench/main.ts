/**
 * `npm run bench [-- rest …]`: measures the built apps on servers that it starts itself, and prints ratios against a
 * floor from the same run. It asserts nothing; docs/benchmarks.md records the results.
 */
import { ensurePrograms, Failure, progress } from '../bootstrap.js';

const BENCHMARKS: Record<string, () => Promise<{ run(): Promise<void> }>> = {
  rest: () => import('./rest.js'),
  deliveries: () => import('./deliveries.js'),
  isolation: () => import('./isolation.js'),
  limits: () => import('./limits.js'),
  signaling: () => import('./signaling.js'),
  rooms: () => import('./rooms.js'),
  slots: () => import('./slots.js'),
  growth: () => import('./growth.js'),
};

export async function main(chosen: string[]): Promise<void> {
  const unknown = chosen.filter((name) => BENCHMARKS[name] === undefined);
  if (unknown.length > 0) {
    throw new Failure(`There is no benchmark "${unknown.join(' ')}", only ${Object.keys(BENCHMARKS).join(', ')}`);
  }
  const say = (line: string) => console.log(line);
  await ensurePrograms(['redis-server', 'janus'], { say, step: progress(say) });
  for (const [name, load] of Object.entries(BENCHMARKS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    console.log(`\n## ${name}\n`);
    await (await load()).run();
  }
}
