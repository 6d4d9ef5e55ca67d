/**
 * `npm run --silent rtc -- …`: the admin command line, on the servers of the local start unless DATABASE_URL says
 * otherwise. Standard output belongs to the command line alone.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { bootstrap } from './lib/bootstrap.mjs';
import { explain } from './lib/failure.mjs';
import { dataDirectory, readJson, root } from './lib/files.mjs';

try {
  await bootstrap({ say: (line) => console.error(line), programs: [] });
  const main = join(root, 'apps', 'cli', 'dist', 'main.js');
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  const env = { ...localEnvironment(), ...given };
  const child = spawn(process.execPath, [main, ...process.argv.slice(2)], { stdio: 'inherit', env });
  // The terminal's Ctrl-C reaches the child as well; who ends this process alone means both.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  child.once('error', (error) => {
    explain(error);
    process.exitCode = 1;
  });
  child.once('exit', (code, signal) => {
    process.exit(signal === null ? (code ?? 1) : 1);
  });
} catch (error) {
  explain(error);
  process.exitCode = 1;
}

/** Where the local start's servers are, if it runs and nothing else was asked for. */
function localEnvironment() {
  if (process.env['DATABASE_URL']) return {};
  const dataDir = dataDirectory();
  const dev = readJson(join(dataDir, 'dev.json'));
  if (dev === undefined) return {};
  const secrets = readJson(join(dataDir, 'secrets.json'));
  return { DATABASE_URL: dev.databaseUrl, REDIS_URL: dev.redisUrl, ENCRYPTION_KEYS: secrets?.encryptionKeys };
}
