import { join } from 'node:path';
import { readJson, run, type Step } from '../bootstrap.js';
import { writeJson } from '../local-data.js';
import { mainOf } from './app.js';

const cli = mainOf('cli');

export interface DevelopmentKeys {
  projectId: string;
  environmentId: string;
  secretKey: string;
  publishableKey: string;
}

/** What the command line prints about a new object; only keys have a `key`. */
interface Created {
  id: string;
  key: string;
}

/** Runs the admin command line and returns the object that it prints. */
async function rtc(args: string[], env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Created> {
  const failure = `rtc ${args.join(' ')} failed`;
  const out = await run(process.execPath, [cli, ...args, '--json'], { env, signal, failure });
  return JSON.parse(out) as Created;
}

export async function migrate(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<void> {
  const failure = 'The database cannot be migrated';
  await run(process.execPath, [cli, 'db', 'migrate'], { env, signal, failure });
}

/**
 * The development project, environment and keys of this DATA_DIR, kept in development.json (mode 0600). Reuses those of
 * an earlier start if the API still knows them. Creates new ones otherwise, for example after a change of the database.
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

async function makeKeys(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<DevelopmentKeys> {
  const project = await rtc(['projects', 'create', '--name', 'Development'], env, signal);
  const named = ['environments', 'create', '--project', project.id, '--name', 'development'];
  const environment = await rtc(named, env, signal);
  const createKey = (type: string) => rtc(['keys', 'create', '--env', environment.id, '--type', type], env, signal);
  const [secret, publishable] = await Promise.all([createKey('secret'), createKey('publishable')]);
  return {
    projectId: project.id,
    environmentId: environment.id,
    secretKey: secret.key,
    publishableKey: publishable.key,
  };
}

async function isKnown(origin: string, key: string) {
  const response = await fetch(`${origin}/v1/`, { headers: { authorization: `Bearer ${key}`, connection: 'close' } });
  await response.arrayBuffer();
  return response.status === 200;
}
