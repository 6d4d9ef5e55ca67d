/**
 * `./rtc …` and `npm run --silent rtc -- …`: the admin command line. It uses the servers of the local start unless
 * DATABASE_URL is set.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readJson, root } from '../bootstrap.js';
import { runningDataDirectory } from '../local-data.js';

const NOT_STARTED = 'The local start does not run: start it with "npm start" in another terminal, or set DATABASE_URL.';

export async function main(args: string[]): Promise<void> {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  const local = given['DATABASE_URL'] === undefined ? localEnvironment() : {};
  // These need an API and no database.
  const isRemote = args[0] === 'listen' || args.includes('--from-here');
  if (local === null && !isHelp(args) && !isRemote) {
    process.stderr.write(`${NOT_STARTED}\n`);
    process.exit(2);
  }
  // The key and the gateway are the local start's, and no other service's.
  if (
    local !== null &&
    (given['CALLPLANE_URL'] !== undefined || args.some((argument) => argument.startsWith('--url')))
  ) {
    delete local['CALLPLANE_API_KEY'];
    delete local['CALLPLANE_SIGNALING_URL'];
  }
  // The command runs in this process: a second one would take as long as the command itself.
  process.env = { ...local, ...given };
  const file = join(root, 'apps', 'cli', 'dist', 'main.js');
  process.argv = [process.execPath, file, ...args];
  await import(pathToFileURL(file).href);
}

function isHelp(args: readonly string[]): boolean {
  return args.length === 0 || args.some((argument) => ['--help', '-h', 'help'].includes(argument));
}

/** The addresses and keys of the local start's servers; null if it does not run. */
function localEnvironment(): NodeJS.ProcessEnv | null {
  const dataDir = runningDataDirectory();
  const dev = readJson(join(dataDir, 'dev.json')) as
    | { baseUrl: string; signalingUrl: string; secretKey: string; databaseUrl: string; redisUrl: string }
    | undefined;
  if (dev === undefined) return null;
  const secrets = readJson(join(dataDir, 'secrets.json')) as { encryptionKeys: string } | undefined;
  const keys = secrets === undefined ? {} : { ENCRYPTION_KEYS: secrets.encryptionKeys };
  return {
    DATABASE_URL: dev.databaseUrl,
    REDIS_URL: dev.redisUrl,
    CALLPLANE_URL: dev.baseUrl,
    CALLPLANE_SIGNALING_URL: dev.signalingUrl,
    CALLPLANE_API_KEY: dev.secretKey,
    ...keys,
    RTC_LOCAL_START: 'true',
  };
}
