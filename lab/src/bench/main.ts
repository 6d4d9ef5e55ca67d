/**
 * `npm run bench [-- rest …]`: measures the built apps on servers that it starts itself, and prints ratios against a
 * floor from the same run. It asserts nothing; docs/benchmarks.md records the results.
 */
import { ensurePrograms, Failure, progress } from '../bootstrap.js';

const BENCHMARKS: Record<string, () => Promise<{ run(): Promise<void> }>> = {
  rest: () => import('./rest.js'),
  cost: () => import('./cost.js'),
  deliveries: () => import('./deliveries.js'),
  isolation: () => import('./isolation.js'),
  limits: () => import('./limits.js'),
  signaling: () => import('./signaling.js'),
  rooms: () => import('./rooms.js'),
  slots: () => import('./slots.js'),
  'media-quality': () => import('./media-quality.js'),
  growth: () => import('./growth.js'),
  telemetry: () => import('./telemetry.js'),
};

const PROGRAMS = ['redis-server', 'janus'];

export async function main(chosen: string[]): Promise<void> {
  const unknown = chosen.filter((name) => BENCHMARKS[name] === undefined);
  if (unknown.length > 0) {
    throw new Failure(`There is no benchmark "${unknown.join(' ')}", only ${Object.keys(BENCHMARKS).join(', ')}`);
  }
  const isChosen = (name: string) => chosen.length === 0 || chosen.includes(name);
  const say = (line: string) => console.log(line);
  await ensurePrograms(isChosen('media-quality') ? [...PROGRAMS, 'turnserver', 'chromium'] : PROGRAMS, {
    say,
    step: progress(say),
  });
  for (const [name, load] of Object.entries(BENCHMARKS)) {
    if (!isChosen(name)) continue;
    console.log(`\n## ${name}\n`);
    await (await load()).run();
  }
}
