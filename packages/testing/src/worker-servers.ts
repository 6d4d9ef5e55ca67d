import { stopAll } from './resources.js';
import { spawnApp, type TestApp } from './test-app.js';
import { createTestDatabase } from './test-database.js';
import { startTestRedis } from './test-redis.js';
import type { TestServer } from './test-servers.js';

/**
 * The servers that a Jest worker keeps from file to file: a database, a Redis and apps with the settings that most
 * files use. Jest gives each file modules of its own, so this module runs outside of them, in jest/environment.mjs. A
 * test file calls workerServers(), and must not break them.
 */
export interface WorkerServers {
  readonly databaseUrl: string;
  readonly redis: TestServer;
  /** The app of this name. The first call starts it; it starts again if it has ended. */
  app(name: string, settings: Record<string, string>): Promise<TestApp>;
}

const scope = globalThis as { [key: symbol]: unknown };
const KEY = Symbol.for('callplane.worker');

/** The servers of this Jest worker, for a test file. The first call starts them. */
export function workerServers(): Promise<WorkerServers> {
  return (scope[KEY] as () => Promise<WorkerServers>)();
}

const VALUES = Symbol.for('callplane.values');

/**
 * A value that is costly to make and never changes. The first test file of this Jest worker that needs it makes it. It
 * must not refer to objects of that file, which would keep the memory of the file in use.
 */
export function workerValue<T>(key: string, make: () => T): T {
  const values = scope[VALUES] as Map<string, T>;
  const value = values.get(key) ?? make();
  values.set(key, value);
  return value;
}

let kept: Promise<WorkerServers> | undefined;

/** The same for jest/environment.mjs, which passes this function on to each test file. */
export function keepServers(): Promise<WorkerServers> {
  return (kept ??= start());
}

/** Ends the servers that the worker keeps. */
export async function stopKeptServers(): Promise<void> {
  await kept;
  await stopAll(globalThis);
}

async function start(): Promise<WorkerServers> {
  const [{ url: databaseUrl }, redis] = await Promise.all([createTestDatabase(), startTestRedis()]);
  const apps = new Map<string, Promise<TestApp>>();
  const begin = async (name: string, settings: Record<string, string>) => {
    const app = await spawnApp({ name, env: { DATABASE_URL: databaseUrl, REDIS_URL: redis.url, ...settings } });
    void app.exited.then(() => apps.delete(name));
    return app;
  };
  return {
    databaseUrl,
    redis,
    app: (name, settings) => {
      const app = apps.get(name) ?? begin(name, settings);
      apps.set(name, app);
      return app;
    },
  };
}
