/** `npm run bench`: measures the built apps on servers that it starts itself. `--help` names the benchmarks. */
import { ensurePrograms, Failure, parsed, progress } from '../bootstrap.js';
import { exitOnSignals } from '../fleet/processes.js';

interface Benchmark {
  what: string;
  load: () => Promise<{ run(): Promise<void> }>;
}

const BENCHMARKS: Record<string, Benchmark> = {
  rest: { what: 'requests a second against a bare Express route', load: () => import('./rest.js') },
  deliveries: { what: 'deliveries a second against a bare BullMQ worker', load: () => import('./deliveries.js') },
  events: { what: 'events from the API to a receiver, and a killed worker', load: () => import('./events.js') },
  start: { what: 'starts of the apps, and a killed API', load: () => import('./start.js') },
  isolation: { what: 'a tenant beside hostile ones', load: () => import('./isolation.js') },
  forwarding: { what: 'processor time of a forwarded packet', load: () => import('./forwarding.js') },
  forwards: { what: 'a room on three media servers against one', load: () => import('./forwards.js') },
  'first-frames': {
    what: 'the way to the first picture, in Node and Chromium',
    load: () => import('./first-frames.js'),
  },
  signaling: { what: 'ends of rooms', load: () => import('./signaling.js') },
  rooms: { what: 'rooms of up to 10,000, without media', load: () => import('./rooms.js') },
  streams: { what: 'bytes a second of streams between participants', load: () => import('./streams.js') },
  'media-quality': { what: 'picture and sound on bad lines, in Chromium', load: () => import('./media-quality.js') },
  encryption: { what: 'frames and processor time with end-to-end encryption', load: () => import('./encryption.js') },
  recordings: { what: 'processor time of recordings and their composites', load: () => import('./recordings.js') },
  growth: { what: 'statements beside few and many finished deliveries', load: () => import('./growth.js') },
};

const USAGE = `npm run bench [-- NAME…]: runs these benchmarks, or all of them, and prints tables for docs/benchmarks.md
${Object.entries(BENCHMARKS)
  .map(([name, { what }]) => `  ${name.padEnd(14)} ${what}`)
  .join('\n')}
Their files in lab/src/bench name variables of the environment that shorten them, such as BENCH_ROUNDS=1.`;

const PROGRAMS = ['redis-server', 'janus', 'turnserver'];

export async function main(args: string[]): Promise<void> {
  const say = (line: string) => console.log(line);
  const { values, positionals: chosen } = parsed({
    args,
    allowPositionals: true,
    options: { help: { type: 'boolean', short: 'h' } },
  });
  if (values.help === true) {
    say(USAGE);
    return;
  }
  const unknown = chosen.filter((name) => BENCHMARKS[name] === undefined);
  if (unknown.length > 0) {
    throw new Failure(`There is no benchmark "${unknown.join(' ')}", only ${Object.keys(BENCHMARKS).join(', ')}`);
  }
  const isChosen = (name: string) => chosen.length === 0 || chosen.includes(name);
  exitOnSignals();
  const programs = [
    ...PROGRAMS,
    ...(isChosen('media-quality') || isChosen('first-frames') ? ['chromium'] : []),
    ...(isChosen('encryption') ? ['chromium-headless-shell'] : []),
    ...(isChosen('recordings') ? ['ffmpeg'] : []),
  ];
  await ensurePrograms(programs, { say, step: progress(say) });
  for (const [name, { load }] of Object.entries(BENCHMARKS)) {
    if (!isChosen(name)) continue;
    console.log(`\n## ${name}\n`);
    await (await load()).run();
  }
  // A regular end of the process would end wrtc's connections, which can crash it.
  process.exit();
}
