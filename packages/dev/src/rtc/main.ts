/**
 * `npm run --silent rtc -- …`: the admin command line. It uses the servers of the local start unless DATABASE_URL is
 * set.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { readJson, root } from '../bootstrap.js';
import { dataDirectory } from '../local-data.js';

export async function main(args: string[]): Promise<void> {
  const cli = join(root, 'apps', 'cli', 'dist', 'main.js');
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  const env = { ...localEnvironment(), ...given };
  const child = spawn(process.execPath, [cli, ...args], { stdio: 'inherit', env });
  // The terminal delivers Ctrl-C to the child as well. SIGTERM reaches only this process, which passes it on.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exitCode, signal) => resolve(signal === null ? (exitCode ?? 1) : 1));
  });
  process.exit(code);
}

/** The addresses and keys of the local start's servers, if it runs and DATABASE_URL is not set. */
function localEnvironment(): NodeJS.ProcessEnv {
  if (process.env['DATABASE_URL']) return {};
  const dataDir = dataDirectory();
  const dev = readJson(join(dataDir, 'dev.json')) as { databaseUrl: string; redisUrl: string } | undefined;
  if (dev === undefined) return {};
  const secrets = readJson(join(dataDir, 'secrets.json')) as { encryptionKeys: string } | undefined;
  return { DATABASE_URL: dev.databaseUrl, REDIS_URL: dev.redisUrl, ENCRYPTION_KEYS: secrets?.encryptionKeys };
}
