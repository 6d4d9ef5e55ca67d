/**
 * `npm start`: runs all of Callplane on this machine, from a bare clone. Reads top to bottom. Everything that it starts
 * is a separate process: listed in DATA_DIR/dev.json, restarted when it dies, and stopped with this one.
 */
import { join } from 'node:path';
import { LocalServerError, startWatchdog } from '@callplane/local-servers';
import { explain, progress, root, type Step } from '../bootstrap.js';
import { followLogs } from './app-logs.js';
import { APPS, startApp, type App } from './app.js';
import { takeDataFolder } from './data-folder.js';
import { developmentKeys, migrate } from './development.js';
import { appEnvironment } from './environment.js';
import { keepRunning } from './keep-running.js';
import { portBook, type PortBook } from './ports.js';
import { installedPrograms } from './programs.js';
import { clearEarlierRun, devFileOf, openRoster, type Roster } from './roster.js';
import { screen } from './screen.js';
import { localSecrets } from './secrets.js';
import { startServers } from './servers.js';
import { choosePorts, originOf, readSettings, type Settings } from './settings.js';
import { handleSignals } from './signals.js';

/** What this start has to undo. */
interface Started {
  apps: (() => Promise<void>)[];
  servers: (() => Promise<void>)[];
  /** Run after everything has stopped; the last one runs first. */
  cleanUps: (() => void)[];
}

interface Context {
  say: (line: string) => void;
  step: Step;
  stopSignal: AbortSignal;
  onKillNow: (action: () => void) => void;
  started: Started;
}

export async function main(): Promise<void> {
  const say = (line: string) => console.log(line);
  const { stopSignal, beginStop, onKillNow } = handleSignals(say);
  const started: Started = { apps: [], servers: [], cleanUps: [] };
  let exitCode = 0;
  try {
    await start({ say, step: progress(say), stopSignal, onKillNow, started });
    await abortOf(stopSignal);
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
  const { say, step, stopSignal, started } = context;
  const began = performance.now();
  const settings = readSettings();
  const { dataDir } = settings;
  started.cleanUps.push(takeDataFolder(dataDir));
  await clearEarlierRun(dataDir, say);
  const { signalingPort } = await choosePorts(settings);
  const signalingOrigin = originOf(settings.host, signalingPort);
  const programs = installedPrograms();

  const roster = openRoster(dataDir, startWatchdog([devFileOf(dataDir)]));
  started.cleanUps.push(() => roster.close());
  context.onKillNow(() => {
    roster.withdraw();
    for (const pid of roster.pids()) process.kill(pid, 'SIGKILL');
  });
  const ports = portBook(dataDir);
  const secrets = localSecrets(dataDir);
  const onStarted = (stop: () => Promise<void>) => started.servers.push(stop);
  const servers = await step('Starting PostgreSQL, Redis, coturn and Janus', () =>
    startServers({ settings, secrets, ports, roster, say, ...programs, stopSignal, onStarted }),
  );
  stopSignal.throwIfAborted();

  const env = appEnvironment(settings, secrets, servers);
  await step('Migrating the database', () => migrate(env, stopSignal));

  const startGroup = (apps: App[], own: NodeJS.ProcessEnv) =>
    step(`Starting ${apps.map(({ name }) => name).join(' and ')}`, () =>
      allOf(apps.map((app) => runApp(context, { app, settings, ports, roster, env: { ...env, ...own } }))),
    );
  const firstReady = startGroup(
    APPS.filter(({ needsKeys }) => !needsKeys),
    consoleSettings(env, `${signalingOrigin.replace('http', 'ws')}/v1/signaling`),
  );
  // New keys need only the database. Whether kept keys are still valid, only the API can tell.
  const keysReady = developmentKeys(settings, env, stopSignal, firstReady, step);
  const laterReady = keysReady.then(({ secretKey }) =>
    startGroup(
      APPS.filter(({ needsKeys }) => needsKeys),
      demoSettings(settings, signalingPort, secretKey),
    ),
  );
  await allOf([firstReady, keysReady, laterReady]);
  const keys = await keysReady;
  stopSignal.throwIfAborted();
  const urls = {
    baseUrl: `${settings.origin}/v1`,
    signalingUrl: `${signalingOrigin.replace('http', 'ws')}/v1/signaling`,
    demoUrl: `${signalingOrigin}/demo/`,
  };
  roster.publish({ ...urls, ...keys, databaseUrl: servers.databaseUrl, redisUrl: servers.redisUrl });
  started.cleanUps.push(() => roster.withdraw());
  say(
    screen({
      ...urls,
      isTerminal: process.stdout.isTTY,
      devFile: devFileOf(dataDir),
      origin: settings.origin,
      dataDir,
      turn: (settings.turnUrls ?? servers.turn['TURN_URLS'])?.split(',')[0],
      hasMedia: (settings.mediaNodes ?? servers.media['MEDIA_NODES']) !== undefined,
      seconds: (performance.now() - began) / 1000,
      keys,
    }),
  );
  started.cleanUps.push(
    followLogs(
      APPS.map(({ name }) => ({ name, file: logFileOf(dataDir, name) })),
      say,
    ),
  );
}

/** The settings of the demo page and its small backend. */
function demoSettings(settings: Settings, signalingPort: number, secretKey: string): NodeJS.ProcessEnv {
  const dir = join(root, 'apps', 'demo', 'dist');
  return { PORT: String(signalingPort), DEMO_DIR: dir, DEMO_API_URL: settings.origin, DEMO_API_KEY: secretKey };
}

/** The gateway listens on another port than the API, which serves the console. */
function consoleSettings(env: NodeJS.ProcessEnv, signalingUrl: string): NodeJS.ProcessEnv {
  return { CONSOLE_SIGNALING_URL: env['CONSOLE_SIGNALING_URL'] ?? signalingUrl };
}

interface AppPlan {
  app: App;
  settings: Settings;
  ports: PortBook;
  roster: Roster;
  env: NodeJS.ProcessEnv;
}

async function runApp(context: Context, { app, settings, ports, roster, env }: AppPlan): Promise<void> {
  const { name, readyPort } = app;
  const healthPort = await ports.portOf(`${name}-health`);
  const metricsPort = await ports.portOf(`${name}-metrics`);
  const origin = readyPort === 'PORT' ? originOf(settings.host, Number(env['PORT'])) : `http://127.0.0.1:${healthPort}`;
  const begin = () =>
    startApp({
      name,
      origin,
      env: { ...env, HEALTH_PORT: String(healthPort), METRICS_PORT: String(metricsPort) },
      logFile: logFileOf(settings.dataDir, name),
      // A little more than the app's own deadline for finishing its work.
      stopWithinMs: settings.shutdownDeadlineMs + 2_000,
      onSpawn: (pid) => roster.spawned(name, pid),
      stopSignal: context.stopSignal,
    });
  // Exit code 1 means that the app has reported wrong settings; a restart would only repeat that.
  const isPassing = (error: unknown) =>
    error instanceof LocalServerError && error.exit !== undefined && error.exit.code !== 1;
  const { say, stopSignal, started } = context;
  const { stop } = await keepRunning({ name, begin, say, stopSignal, isPassing });
  started.apps.push(stop);
}

function logFileOf(dataDir: string, app: string): string {
  return join(dataDir, 'logs', `${app}.log`);
}

/** Waits for all promises, even if one fails: otherwise processes that start meanwhile would never be stopped. */
async function allOf(promises: Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(promises)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Stops the apps before the servers, so that they can finish their work; then runs the clean-ups, last first. */
async function stopEverything(started: Started): Promise<void> {
  for (const group of [started.apps, started.servers]) {
    const results = await Promise.allSettled(group.map((stop) => stop()));
    for (const result of results) if (result.status === 'rejected') explain(result.reason);
  }
  for (const cleanUp of started.cleanUps.reverse()) cleanUp();
}
