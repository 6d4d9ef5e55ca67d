import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from '../logging/logger.js';

/** A dependency: `ping` resolves when it answers and rejects when it does not. */
export interface HealthCheck {
  ping(): Promise<unknown>;
  /**
   * Whether the process can do its work without it for a while. It is reported all the same, but an app that still
   * serves stays ready: taking every instance out of the load balancer would turn a slow minute into an outage.
   */
  optional?: boolean;
}

export interface HealthReport {
  status: 200 | 503;
  body: { status: 'ok' | 'degraded' | 'unavailable'; checks?: Record<string, 'ok' | 'unavailable'> };
}

/** How long a dependency may take to answer, in milliseconds. */
const CHECK_DEADLINE_MS = 1000;

export interface Health {
  /** The process works: it answers. Never asks a dependency, or a database outage would restart every app. */
  livez(): HealthReport;
  /** Its dependencies answer and it is not draining: it may be sent work. */
  readyz(): Promise<HealthReport>;
}

export function createHealth(
  logger: Logger,
  checks: Readonly<Record<string, HealthCheck>>,
  isClosing: () => boolean,
): Health {
  const away = new Set<string>();
  const look = async (name: string, check: HealthCheck): Promise<'ok' | 'unavailable'> => {
    const error = await failure(check);
    // Told once when it goes and once when it is back, not at every probe.
    if (error !== null && !away.has(name)) logger.warn('dependency unavailable', { dependency: name, error });
    if (error === null && away.has(name)) logger.info('dependency available', { dependency: name });
    if (error === null) away.delete(name);
    else away.add(name);
    return error === null ? 'ok' : 'unavailable';
  };
  return {
    livez: () => ({ status: 200, body: { status: 'ok' } }),
    async readyz() {
      const results = await Promise.all(
        Object.entries(checks).map(async ([name, check]) => [name, await look(name, check)] as const),
      );
      const missing = results.filter(([, result]) => result !== 'ok').map(([name]) => name);
      const ready = !isClosing() && missing.every((name) => checks[name]?.optional === true);
      return {
        status: ready ? 200 : 503,
        body: {
          status: !ready ? 'unavailable' : missing.length > 0 ? 'degraded' : 'ok',
          checks: Object.fromEntries(results),
        },
      };
    },
  };
}

/** Why a dependency does not answer; null when it does. */
async function failure(check: HealthCheck): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_DEADLINE_MS} ms`)), CHECK_DEADLINE_MS);
    });
    await Promise.race([check.ping(), deadline]);
    return null;
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
  }
}

/** `/livez` and `/readyz` on a port of their own, for apps that serve nothing else. */
export async function startHealthServer(
  health: Health,
  address: { host: string; port: number },
): Promise<{ port: number; close(): Promise<void> }> {
  const server: Server = createServer((request, response) => {
    const path = request.url?.split('?')[0];
    const report =
      path === '/livez'
        ? Promise.resolve(health.livez())
        : path === '/readyz'
          ? health.readyz()
          : Promise.resolve(undefined);
    void report.then((answer) => {
      response.writeHead(answer?.status ?? 404, { 'content-type': 'application/json', connection: 'close' });
      response.end(JSON.stringify(answer?.body ?? { status: 'not found' }));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
