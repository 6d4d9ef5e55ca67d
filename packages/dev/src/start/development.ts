import { join } from 'node:path';
import { rmSync } from 'node:fs';
import { readJson, root, run, type Step } from '../bootstrap.js';
import { writeJson, devFileOf } from '../local-data.js';

const cli = join(root, 'apps', 'cli', 'dist', 'main.js');

type DevelopmentKeys = Awaited<ReturnType<typeof makeKeys>>;

/** The output of the command line about a new project. */
interface Created {
  id: string;
  environment: { id: string };
  keys: { type: 'secret' | 'publishable'; key: string }[];
}

export async function migrate(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
  const failure = 'The database cannot be migrated';
  await run(process.execPath, [cli, 'db', 'migrate'], { env, signal, failure });
}

/**
 * The development project, environment and keys of this DATA_DIR, kept in development.json (mode 0600). Reuses the keys
 * of an earlier start if the API still knows them. Creates new ones otherwise, for example after a change of the
 * database.
 */
export async function developmentKeys(
  { dataDir, origin }: { dataDir: string; origin: string },
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  apiReady: Promise<unknown>,
  step: Step,
): Promise<DevelopmentKeys> {
  const file = join(dataDir, 'development.json');
  const kept = readJson(file) as DevelopmentKeys | undefined;
  if (kept !== undefined) {
    await apiReady;
    const known = await Promise.all([kept.secretKey, kept.publishableKey].map((key) => isKnown(origin, key)));
    if (known.every(Boolean)) return kept;
  }
  const made = await step('Creating a development project', () => makeKeys(env, signal));
  writeJson(file, made);
  return made;
}

async function makeKeys(env: NodeJS.ProcessEnv, signal: AbortSignal) {
  const args = ['projects', 'create', '--name', 'Development', '--environment', 'development', '--json'];
  const failure = 'The development project cannot be created';
  const out = await run(process.execPath, [cli, ...args], { env, signal, failure });
  const { id, environment, keys } = JSON.parse(out) as Created;
  const keyOf = (wanted: string) => keys.find(({ type }) => type === wanted)?.key ?? '';
  return {
    projectId: id,
    environmentId: environment.id,
    secretKey: keyOf('secret'),
    publishableKey: keyOf('publishable'),
  };
}

async function isKnown(origin: string, key: string) {
  const response = await fetch(`${origin}/v1/`, { headers: { authorization: `Bearer ${key}`, connection: 'close' } });
  await response.arrayBuffer();
  return response.status === 200;
}

export type RunRecord = ReturnType<typeof openRecord>;

/**
 * Keeps dev.json up to date, which exists from `publish` until `withdraw`, for people and scripts. A dead process stays
 * listed until its successor has an id.
 */
export function openRecord(dataDir: string) {
  const file = devFileOf(dataDir);
  const pids = new Map<string, number>();
  let published: object | undefined;
  const write = (): void => {
    if (published === undefined) return;
    writeJson(file, { ...published, processes: [...pids].map(([name, pid]) => ({ name, pid })) });
  };
  const withdraw = (): void => {
    published = undefined;
    rmSync(file, { force: true });
  };
  // A start that was killed has left its file.
  withdraw();
  return {
    /** Records a new process, in place of an earlier one of that name. */
    spawned(name: string, pid: number): void {
      pids.set(name, pid);
      write();
    },
    /** @param facts the content of dev.json, besides the processes; docs/local.md has its names. */
    publish(facts: object): void {
      published = facts;
      write();
    },
    withdraw,
  };
}
