import { inTime } from '@callplane/core';
import { startSmallServer, type RequestHandler, type SmallAnswer, type SmallServer } from '../http/small-server.js';
import type { Logger } from '../logging/logger.js';

/** A dependency. `ping` resolves if it answers and rejects if it does not. */
export interface HealthCheck {
  ping(): Promise<unknown>;
  /**
   * Whether the process can work without this dependency for a while. A failure is reported, but the app stays ready.
   * Removing every instance from the load balancer would turn a slow minute into an outage.
   */
  optional?: boolean;
}

interface HealthReport {
  status: 200 | 503;
  /** The value of a failed check is `unavailable`, or the `reason` of its error if it has one. */
  body: { status: 'ok' | 'degraded' | 'unavailable'; checks?: Record<string, string>; instance?: string };
}

/** How long a dependency may take to answer, in milliseconds. */
const CHECK_DEADLINE_MS = 1000;

export interface Health {
  /** The process answers. Never checks a dependency, otherwise a database outage would restart every app. */
  livez(): HealthReport;
  /** The process can take work: its required dependencies answer, and it is not draining. */
  readyz(): Promise<HealthReport>;
}

export function createHealth(
  logger: Logger,
  checks: Readonly<Record<string, HealthCheck>>,
  isClosing: () => boolean,
  instance?: string,
): Health {
  const away = new Map<string, string>();
  const look = async (name: string, check: HealthCheck): Promise<string> => {
    const error = await failure(check);
    if (error === null) {
      if (away.delete(name)) logger.info('dependency available', { dependency: name });
      return 'ok';
    }
    const reason = reasonOf(error);
    // Logs only changes: a failure, another reason and a recovery. Probes in between log nothing.
    if (away.get(name) !== reason) logger.warn('dependency unavailable', { dependency: name, reason, error });
    away.set(name, reason);
    return reason;
  };
  const report = async (): Promise<HealthReport> => {
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
        ...(instance === undefined ? {} : { instance }),
      },
    };
  };
  let running: Promise<HealthReport> | undefined;
  return {
    livez: () => ({ status: 200, body: { status: 'ok' } }),
    // Requests at the same time share one report: they need no key, and each check takes a database connection.
    readyz: () => (running ??= report().finally(() => (running = undefined))),
  };
}

/** The `reason` of an error is safe to show to callers. */
function reasonOf(error: unknown): string {
  const reason = error instanceof Error ? (error as Error & { reason?: unknown }).reason : undefined;
  return typeof reason === 'string' ? reason : 'unavailable';
}

async function failure(check: HealthCheck): Promise<unknown> {
  try {
    await inTime(check.ping(), CHECK_DEADLINE_MS, () => new Error(`no answer within ${CHECK_DEADLINE_MS} ms`));
    return null;
  } catch (error) {
    return error;
  }
}

/** Serves `/livez` and `/readyz`, and the requests that `handle` takes. */
export function startHealthServer(
  health: Health,
  address: { host: string; port: number },
  handle?: RequestHandler,
): Promise<SmallServer> {
  const answer = ({ status, body }: HealthReport): SmallAnswer => ({
    status,
    type: 'application/json',
    text: JSON.stringify(body),
  });
  return startSmallServer(
    { '/livez': () => answer(health.livez()), '/readyz': async () => answer(await health.readyz()) },
    address,
    handle,
  );
}
