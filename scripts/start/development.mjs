import { join } from 'node:path';
import { root, readJson, writeJson } from '../lib/files.mjs';
import { run } from '../lib/run.mjs';

const cli = join(root, 'apps', 'cli', 'dist', 'main.js');

/**
 * Runs the admin command line and returns the object that it prints.
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
async function rtc(args, env, signal) {
  const failure = `rtc ${args.join(' ')} failed`;
  const out = await run(process.execPath, [cli, ...args, '--json'], { env, signal, failure });
  return JSON.parse(out);
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {AbortSignal} signal
 */
export async function migrate(env, signal) {
  const failure = 'The database cannot be migrated';
  await run(process.execPath, [cli, 'db', 'migrate'], { env, signal, failure });
}

/**
 * The development project, environment and keys of this DATA_DIR, kept in development.json (mode 0600): those of an
 * earlier start when the API still knows them (the database may be another one by now), else new ones.
 *
 * @param {{ dataDir: string, origin: string }} settings
 * @param {NodeJS.ProcessEnv} env
 * @param {AbortSignal} signal
 * @param {Promise<unknown>} apiReady
 * @param {import('../lib/progress.mjs').Step} step
 * @returns {Promise<{ projectId: string, environmentId: string, secretKey: string, publishableKey: string }>}
 */
export async function developmentKeys({ dataDir, origin }, env, signal, apiReady, step) {
  const file = join(dataDir, 'development.json');
  const kept = readJson(file);
  if (kept !== undefined) {
    await apiReady;
    const known = await Promise.all([kept.secretKey, kept.publishableKey].map((key) => isKnown(origin, key)));
    if (known.every(Boolean)) return kept;
  }
  const made = await step('Making a development project', () => makeKeys(env, signal));
  writeJson(file, made);
  return made;
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {AbortSignal} signal
 */
async function makeKeys(env, signal) {
  const project = await rtc(['projects', 'create', '--name', 'Development'], env, signal);
  const named = ['environments', 'create', '--project', project.id, '--name', 'development'];
  const environment = await rtc(named, env, signal);
  /** @param {string} type */
  const createKey = (type) => rtc(['keys', 'create', '--env', environment.id, '--type', type], env, signal);
  const [secret, publishable] = await Promise.all([createKey('secret'), createKey('publishable')]);
  return {
    projectId: project.id,
    environmentId: environment.id,
    secretKey: secret.key,
    publishableKey: publishable.key,
  };
}

/**
 * @param {string} origin
 * @param {string} key
 */
async function isKnown(origin, key) {
  const response = await fetch(`${origin}/v1/`, { headers: { authorization: `Bearer ${key}`, connection: 'close' } });
  await response.arrayBuffer();
  return response.status === 200;
}
