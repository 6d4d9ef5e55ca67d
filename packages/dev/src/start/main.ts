/**
 * `npm start`: runs all of Callplane on this machine, from a bare clone. Reads top to bottom. Everything that it starts
 * is a separate process: listed in DATA_DIR/dev.json, restarted when it dies, and ended with this one.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { explain, Failure, progress, root, takeLock, type Step } from '../bootstrap.js';
import { devFileOf, localSecrets, rememberDataDirectory } from '../local-data.js';
import { startDemo } from '../demo/demo.js';
import { buildSite } from '../docs/main.js';
import { APPS, startApp, type App, startMediaAgent } from './app.js';
import { developmentKeys, migrate, openRecord, type RunRecord } from './development.js';
import { heldPort, chooseDemoPort, chooseSignalingPort, originOf, readSettings, type Settings } from './settings.js';
import { keepRunning } from './keep-running.js';
import { handleSignals, onEnter, screen } from './terminal.js';
import { startServers, type LocalServers } from './servers.js';

/** The parts that this start has to undo. */
interface Started {
  apps: (() => Promise<void>)[];
  servers: (() => Promise<void>)[];
  /** Run after everything has stopped; the last one runs first. */
  cleanUps: (() => void)[];
}

interface Context {
  isVerbose: boolean;
  say: (line: string) => void;
  step: Step;
  stopSignal: AbortSignal;
  onKillNow: (action: () => void) => void;
  started: Started;
}

export async function main(args: string[]): Promise<void> {
  const say = (line: string) => console.log(line);
  const { stopSignal, beginStop, onKillNow } = handleSignals(say);
  const started: Started = { apps: [], servers: [], cleanUps: [] };
  let exitCode = 0;
  try {
    const isVerbose = args.includes('--verbose');
    const unknown = args.find((argument) => argument !== '--verbose');
    if (unknown !== undefined) throw new Failure(`npm start takes --verbose, not "${unknown}"`);
    await start({ isVerbose, say, step: progress(say), stopSignal, onKillNow, started });
    if (!stopSignal.aborted)
      await new Promise((resolve) => stopSignal.addEventListener('abort', resolve, { once: true }));
  } catch (error) {
    if (!stopSignal.aborted) {
      exitCode = 1;
      explain(error);
    }
  }
  beginStop();
  await stopEverything(started);
  process.exit(exitCode);
}

async function start(context: Context): Promise<void> {
  const { isVerbose, say, step, stopSignal, started } = context;
  const began = performance.now();
  const settings = readSettings();
  const { dataDir } = settings;
  started.cleanUps.push(await takeDataFolder(dataDir));
  const record = openRecord(dataDir);
  started.cleanUps.push(record.withdraw);
  context.onKillNow(record.withdraw);
  const signalingPort = await chooseSignalingPort(settings);

  const secrets = localSecrets(dataDir);
  const onStarted = (stop: () => Promise<void>) => started.servers.push(stop);
  const servers = await step('Starting PostgreSQL, Redis, coturn and Janus', () =>
    startServers({ settings, secrets, record, say, stopSignal, onStarted }),
  );
  stopSignal.throwIfAborted();

  const signalingOrigin = originOf(settings.host, signalingPort);
  const signalingUrl = `${signalingOrigin.replace('http', 'ws')}/v1/signaling`;
  const env = {
    // The gateway listens on another port than the API, which serves the console.
    CONSOLE_SIGNALING_URL: signalingUrl,
    ...appEnvironment(settings, secrets.encryptionKeys, servers),
  };
  await step('Migrating the database', () => migrate(env, stopSignal));

  let isReady = false;
  const onLine = (name: string, line: string): void => {
    if (isReady && (isVerbose || !isRoutine(line))) say(`${name.padEnd(NAME_WIDTH)} | ${line}`);
  };
  const metricsPorts: Record<string, number> = {};
  for (const { name } of APPS) metricsPorts[name] = await heldPort();
  const envOf = ({ name }: App) => ({
    ...env,
    METRICS_PORT: String(metricsPorts[name]),
    ...(name === 'signaling' ? { PORT: String(signalingPort) } : {}),
  });
  const appsReady = step(`Starting ${APPS.map(({ name }) => name).join(', ')}`, () =>
    allOf(APPS.map((app) => runApp(context, { app, settings, record, onLine, env: envOf(app) }))),
  );
  const mediaNode = servers.media['MEDIA_NODES'];
  const agentReady = mediaNode === undefined ? undefined : runMediaAgent(context, { settings, record, env, mediaNode });
  // New keys need only the database. Whether kept keys are still valid, only the API can tell.
  const keysReady = developmentKeys(settings, env, stopSignal, appsReady, step);
  await allOf([appsReady, keysReady, ...(agentReady === undefined ? [] : [agentReady])]);
  const keys = await keysReady;
  stopSignal.throwIfAborted();
  const demoPort = await chooseDemoPort(settings);
  const demo = await startDemo({
    port: demoPort,
    host: settings.host,
    dir: join(root, 'apps', 'demo', 'dist'),
    apiUrl: settings.origin,
    apiKey: keys.secretKey,
    gatewayUrl: signalingOrigin,
    hosts: settings.demoHosts,
    onError: (message, error) => say(`${message}: ${String(error)}`),
  });
  started.apps.push(() => demo.close());
  const demoUrl = `${originOf(settings.host, demoPort)}/demo/`;
  const metricsUrls = Object.fromEntries(
    Object.entries(metricsPorts).map(([name, port]) => [name, `http://127.0.0.1:${port}/metrics`]),
  );
  const urls = { baseUrl: `${settings.origin}/v1`, signalingUrl, demoUrl, metricsUrls };
  rememberDataDirectory(dataDir);
  record.publish({ ...urls, ...keys, databaseUrl: servers.databaseUrl, redisUrl: servers.redisUrl });
  const seconds = (performance.now() - began) / 1000;
  const shown = screen({
    ...urls,
    isTerminal: process.stdout.isTTY,
    isVerbose,
    devFile: devFileOf(dataDir),
    origin: settings.origin,
    dataDir,
    turn: (settings.turnUrls ?? servers.turn['TURN_URLS'])?.split(',')[0],
    hasMedia: (settings.mediaNodes ?? servers.media['MEDIA_NODES']) !== undefined,
    seconds,
    keys,
  });
  say(shown);
  started.cleanUps.push(onEnter(() => say(shown)));
  isReady = true;
  void buildSite(stopSignal).catch((error: unknown) => {
    if (!stopSignal.aborted) say(`${(error as Error).message}: npm run docs shows why.`);
  });
}

/**
 * Makes DATA_DIR and takes it for this start.
 * @returns releases it
 * @throws Failure if another start runs on it.
 */
async function takeDataFolder(dataDir: string): Promise<() => void> {
  try {
    mkdirSync(dataDir, { recursive: true });
  } catch (error) {
    throw new Failure(`DATA_DIR cannot be created: ${(error as Error).message}`);
  }
  const lock = await takeLock(join(dataDir, 'start.lock'));
  if ('release' in lock) return lock.release;
  throw new Failure(
    `Another start (process ${lock.owner}) uses ${dataDir}. Stop it, or choose another DATA_DIR for this start: ` +
      'DATA_DIR=.data-2 PORT=8081 npm start',
  );
}

/** The environment of the apps and the command line: this process' own, with defaults for unset variables. */
function appEnvironment(settings: Settings, encryptionKeys: string, servers: LocalServers): NodeJS.ProcessEnv {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  return {
    NODE_ENV: 'development',
    HEALTH_HOST: '127.0.0.1',
    // The apps write to pipes, so they cannot detect that their output is shown in a terminal.
    ...(process.stdout.isTTY ? { LOG_FORMAT: 'pretty' } : {}),
    RATE_LIMIT_READS_PER_SECOND: '0',
    RATE_LIMIT_WRITES_PER_SECOND: '0',
    // There is no load balancer in front.
    DRAIN_IDLE_MS: '500',
    // A receiver under development listens on this machine, without TLS. No other setting permits such addresses.
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8,::1/128',
    // Some distributions have no newer one.
    MEDIA_ALLOW_OUTDATED: 'true',
    // Ends the rooms of earlier tries.
    ROOM_EMPTY_TIMEOUT_SECONDS: '900',
    ENCRYPTION_KEYS: encryptionKeys,
    RECORDINGS_FOLDER: join(settings.dataDir, 'recordings'),
    RECORDER_SCRATCH_FOLDER: join(settings.dataDir, 'recorder'),
    ...servers.turn,
    ...servers.media,
    ...given,
    HOST: settings.host,
    PORT: String(settings.port),
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
  };
}

/** Whether a line of an app, in either format, reports routine work and no problem. */
function isRoutine(line: string): boolean {
  return /^\{.*"level":"(?:info|debug)"|^[\d:.]+ (?:info|debug)\b/.test(stripVTControlCharacters(line));
}

interface AppPlan {
  app: App;
  settings: Settings;
  record: RunRecord;
  env: NodeJS.ProcessEnv;
  onLine: (name: string, line: string) => void;
}

async function runApp(context: Context, { app, settings, record, env, onLine }: AppPlan): Promise<void> {
  const { name, readyPort } = app;
  const { say, stopSignal, started } = context;
  const healthPort = await heldPort();
  const origin = readyPort === 'PORT' ? originOf(settings.host, Number(env['PORT'])) : `http://127.0.0.1:${healthPort}`;
  const begin = () =>
    startApp({
      name,
      origin,
      env: { ...env, HEALTH_PORT: String(healthPort) },
      logFile: join(settings.dataDir, 'logs', `${name}.log`),
      onLine: (line) => onLine(name, line),
      // A little more than the app's own deadline for finishing its work.
      stopWithinMs: settings.shutdownDeadlineMs + 2_000,
      onSpawn: (pid) => record.spawned(name, pid),
      stopSignal,
    });
  const { stop } = await keepRunning({ name, begin, say, stopSignal });
  started.apps.push(stop);
}

interface AgentPlan extends Pick<AppPlan, 'settings' | 'record' | 'env'> {
  /** The local Janus. */
  mediaNode: string;
}

async function runMediaAgent(context: Context, { settings, record, env, mediaNode }: AgentPlan): Promise<void> {
  const { say, stopSignal, started } = context;
  const [id = '', url = ''] = mediaNode.split('=');
  const name = 'media-agent';
  const begin = () =>
    startMediaAgent({
      node: { id, url },
      env,
      logFile: join(settings.dataDir, 'logs', `${name}.log`),
      onSpawn: (pid) => record.spawned(name, pid),
      stopSignal,
    });
  const { stop } = await keepRunning({ name, begin, say, stopSignal });
  started.apps.push(stop);
}

const NAME_WIDTH = Math.max(...APPS.map(({ name }) => name.length));

/** Waits for all promises, even if one fails: otherwise processes that start meanwhile would never be stopped. */
async function allOf(promises: Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** Stops the apps before the servers, so that they can finish their work; then runs the clean-ups, last first. */
async function stopEverything(started: Started): Promise<void> {
  for (const group of [started.apps, started.servers]) {
    const results = await Promise.allSettled(group.map((stop) => stop()));
    for (const result of results) if (result.status === 'rejected') explain(result.reason);
  }
  for (const cleanUp of started.cleanUps.reverse()) cleanUp();
}
