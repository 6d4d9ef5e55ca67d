/**
 * `npm start`: the whole of Callplane on this machine, from a bare clone. Reads top to bottom; everything that it
 * starts is a process of its own, listed in DATA_DIR/dev.json, restarted when it dies and stopped with this one.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { bootstrap } from './lib/bootstrap.mjs';
import { explain, Failure } from './lib/failure.mjs';
import { root } from './lib/files.mjs';
import { takeLock } from './lib/lock.mjs';
import { progress } from './lib/progress.mjs';
import { installCommand } from './lib/system-packages.mjs';
import { followLogs } from './start/app-logs.mjs';
import { APPS, AppExit, startApp } from './start/app.mjs';
import { developmentKeys, migrate } from './start/development.mjs';
import { keepRunning } from './start/keep-running.mjs';
import { portBook } from './start/ports.mjs';
import { clearEarlierRun, devFileOf, openRoster } from './start/roster.mjs';
import { screen } from './start/screen.mjs';
import { localSecrets } from './start/secrets.mjs';
import { startServers } from './start/servers.mjs';
import { choosePorts, originOf, readSettings } from './start/settings.mjs';
import { handleSignals } from './start/signals.mjs';

/** @type {(line: string) => void} */
const say = (line) => console.log(line);
const step = progress(say);
const { stopSignal, beginStop, onKillNow } = handleSignals(say);
/** What stops what was started, newest last. @type {{ apps: (() => Promise<void>)[], servers: (() => Promise<void>)[] }} */
const started = { apps: [], servers: [] };
/** What is left to do once everything has stopped, last first. @type {(() => void)[]} */
const cleanUps = [];

let exitCode = 0;
try {
  await start();
  await stopRequested();
} catch (error) {
  if (!stopSignal.aborted) {
    exitCode = 1;
    explain(error);
  }
}
beginStop();
await stopEverything();
process.exit(exitCode);

async function start() {
  const began = performance.now();
  const settings = readSettings();
  const { dataDir } = settings;
  takeDataDir(dataDir);
  await clearEarlierRun(dataDir, say);
  const { signalingPort } = await choosePorts(settings);
  const signalingOrigin = originOf(settings.host, signalingPort);

  const programs = [
    ...(settings.redisUrl ? [] : ['redis-server']),
    ...(settings.turnUrls ? [] : ['turnserver']),
    ...(settings.mediaNodes ? [] : ['janus']),
  ];
  const { missing } = await bootstrap({ say, programs, onMissing: whatIsMissing, signal: stopSignal });
  const hasCoturn = !missing.includes('turnserver');
  const hasJanus = !missing.includes('janus');

  const servers = await import('@callplane/local-servers');
  const watchdog = servers.startWatchdog([devFileOf(dataDir)]);
  const roster = openRoster(dataDir, watchdog);
  cleanUps.push(() => roster.close());
  onKillNow(() => {
    roster.withdraw();
    for (const pid of roster.pids()) process.kill(pid, 'SIGKILL');
  });
  const ports = portBook(dataDir, servers);
  const secrets = localSecrets(dataDir);

  const { databaseUrl, redisUrl, turn, media } = await step('Starting PostgreSQL, Redis, coturn and Janus', () =>
    startServers({
      ...{ settings, secrets, ports, roster, servers, say, hasCoturn, hasJanus, stopSignal },
      onStarted: (stop) => started.servers.push(stop),
    }),
  );
  stopSignal.throwIfAborted();

  const env = appEnvironment(settings, secrets, { databaseUrl, redisUrl, turn, media });
  await step('Migrating the database', () => migrate(env, stopSignal));

  const logs = APPS.map(({ name }) => ({ name, file: join(dataDir, 'logs', `${name}.log`) }));
  const [first, later] = [APPS.filter(({ needsKeys }) => !needsKeys), APPS.filter(({ needsKeys }) => needsKeys)];
  const firstReady = step(`Starting ${namesOf(first)}`, () => allOf(first.map((app) => startOne(app, {}))));
  // New keys need the database alone; whether there must be new ones is the API's to say.
  const keysReady = developmentKeys(settings, env, stopSignal, firstReady, step);
  const laterReady = keysReady.then(({ secretKey }) =>
    step(`Starting ${namesOf(later)}`, () => allOf(later.map((app) => startOne(app, demoSettings(secretKey))))),
  );
  const [, keys] = await allOf([firstReady, keysReady, laterReady]);
  stopSignal.throwIfAborted();
  const urls = {
    baseUrl: `${settings.origin}/v1`,
    signalingUrl: `${signalingOrigin.replace('http', 'ws')}/v1/signaling`,
    demoUrl: `${signalingOrigin}/demo/`,
  };
  roster.publish({ ...urls, ...keys, databaseUrl, redisUrl });
  cleanUps.push(() => roster.withdraw());
  const seconds = (performance.now() - began) / 1000;
  const turnUrl = (settings.turnUrls ?? turn['TURN_URLS'])?.split(',')[0];
  const hasMedia = (settings.mediaNodes ?? media['MEDIA_NODES']) !== undefined;
  say(screen({ origin: settings.origin, ...urls, dataDir, turn: turnUrl, hasMedia, seconds, keys }));
  cleanUps.push(followLogs(logs, say));

  /**
   * The demo page, and what its little backend needs.
   * @param {string} secretKey
   * @returns {Record<string, string>}
   */
  function demoSettings(secretKey) {
    const dir = join(root, 'apps', 'demo', 'dist');
    return { PORT: String(signalingPort), DEMO_DIR: dir, DEMO_API_URL: settings.origin, DEMO_API_KEY: secretKey };
  }

  /**
   * @param {(typeof APPS)[number]} app
   * @param {Record<string, string>} own settings of this app alone
   */
  async function startOne({ name, readyPort }, own) {
    const healthPort = await ports.portOf(`${name}-health`);
    const metricsPort = await ports.portOf(`${name}-metrics`);
    /** @type {NodeJS.ProcessEnv} */
    const appEnv = { ...env, HEALTH_PORT: String(healthPort), METRICS_PORT: String(metricsPort), ...own };
    const listens =
      readyPort === 'PORT' ? originOf(settings.host, Number(appEnv['PORT'])) : `http://127.0.0.1:${healthPort}`;
    const begin = () =>
      startApp(
        {
          ...{ name, readyUrl: `${listens}/readyz`, env: appEnv },
          logFile: join(dataDir, 'logs', `${name}.log`),
          // A little more than what the app gives itself to finish what is under way.
          stopWithinMs: settings.shutdownDeadlineMs + 2_000,
          onSpawn: (pid) => roster.spawned(name, pid),
          stopSignal,
        },
        servers,
      );
    // With exit code 1 an app has said what is wrong with its settings, and would say it again.
    const isPassing = (/** @type {unknown} */ error) => error instanceof AppExit && error.code !== 1;
    const { stop } = await keepRunning({ name, begin, say, stopSignal, isPassing });
    started.apps.push(stop);
  }
}

/** @param {typeof APPS} apps */
function namesOf(apps) {
  return apps.map(({ name }) => name).join(' and ');
}

/**
 * Waits for all of them, also when one fails: what has been started by then must be known, to be stopped.
 * @param {Promise<any>[]} promises
 * @returns {Promise<any[]>}
 */
async function allOf(promises) {
  const results = await Promise.allSettled(promises);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

/**
 * Redis is needed, coturn and Janus are not.
 * @param {string[]} programs
 */
function whatIsMissing(programs) {
  if (programs.includes('redis-server')) {
    throw new Failure(
      `Redis is not installed. Run "${installCommand(programs)}", or set REDIS_URL to a Redis 6.2 or later; then start again`,
    );
  }
  if (programs.includes('turnserver')) {
    const command = installCommand(['turnserver']);
    say(`  coturn is not installed: this start goes on without STUN and TURN. To have them: ${command}`);
  }
  if (programs.includes('janus')) {
    const command = installCommand(['janus']);
    say(`  Janus is not installed: this start goes on without audio and video. To have them: ${command}`);
  }
}

/** @param {string} dataDir */
function takeDataDir(dataDir) {
  try {
    mkdirSync(dataDir, { recursive: true });
  } catch (error) {
    throw new Failure(`DATA_DIR cannot be made: ${/** @type {Error} */ (error).message}`);
  }
  const lock = takeLock(join(dataDir, 'start.lock'));
  if ('owner' in lock) {
    throw new Failure(
      `Another start (process ${lock.owner}) runs on ${dataDir}. Stop it, or give this one a place of its own: ` +
        'DATA_DIR=.data-2 PORT=8081 npm start',
    );
  }
  cleanUps.push(lock.release);
}

/**
 * The environment of the apps and the command line: everything from here, and what is not set in it.
 * @param {import('./start/settings.mjs').Settings} settings
 * @param {ReturnType<typeof localSecrets>} secrets
 * @param {{ databaseUrl: string, redisUrl: string, turn: Record<string, string>, media: Record<string, string> }} made
 * @returns {NodeJS.ProcessEnv}
 */
function appEnvironment(settings, secrets, { databaseUrl, redisUrl, turn, media }) {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  return {
    NODE_ENV: 'development',
    HEALTH_HOST: '127.0.0.1',
    // Their output goes to files, so they cannot see for themselves that somebody reads along in a terminal.
    ...(process.stdout.isTTY ? { LOG_FORMAT: 'pretty' } : {}),
    RATE_LIMIT_READS_PER_SECOND: '0',
    RATE_LIMIT_WRITES_PER_SECOND: '0',
    // No load balancer stands in front.
    DRAIN_IDLE_MS: '500',
    // A receiver under development listens on this machine, without TLS. Nothing else opens these.
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8,::1/128',
    ENCRYPTION_KEYS: secrets.encryptionKeys,
    ...turn,
    ...media,
    ...given,
    HOST: settings.host,
    PORT: String(settings.port),
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
  };
}

/** @returns {Promise<void>} */
function stopRequested() {
  return new Promise((resolve) => {
    if (stopSignal.aborted) resolve();
    else stopSignal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Apps before servers, so that they can finish what is under way; then what was noted, last first. */
async function stopEverything() {
  for (const group of [started.apps, started.servers]) {
    const results = await Promise.allSettled(group.map((stop) => stop()));
    for (const result of results) if (result.status === 'rejected') explain(result.reason);
  }
  for (const cleanUp of cleanUps.reverse()) cleanUp();
}
