import { join, resolve } from 'node:path';
import { startServer, type LocalServer, type ServerOptions } from './server.js';
import { serverDirectory, serverFile, withoutRoot } from './unprivileged.js';

export interface PrometheusOptions extends ServerOptions {
  /** Holds the configuration and the scraped data. */
  dir: string;
  port: number;
  /** The text of its `prometheus.yml`. */
  config: string;
  /** Files that the configuration names with absolute paths. */
  ruleFiles: string[];
}

const ANSWERS_WITHIN_MS = 500;

/**
 * Runs `prometheus` on 127.0.0.1. `url` is its HTTP API.
 *
 * `logFile` defaults to `<dir>/prometheus.log`. Throws a LocalServerError if the program is missing or does not start,
 * for example because the configuration or a rule is invalid.
 */
export async function startPrometheus(options: PrometheusOptions): Promise<LocalServer> {
  const dir = resolve(options.dir);
  const configFile = join(dir, 'prometheus.yml');
  serverDirectory(dir);
  serverFile(configFile, options.config);
  const url = `http://127.0.0.1:${options.port}`;
  return startServer({
    name: 'prometheus',
    port: options.port,
    url,
    command: withoutRoot([configFile, ...options.ruleFiles], [dir])('prometheus', [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=127.0.0.1:${options.port}`,
    ]),
    logFile: options.logFile ?? join(dir, 'prometheus.log'),
    isReady: () => answersReady(url),
    onSpawn: options.onSpawn,
  });
}

async function answersReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/-/ready`, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) })).ok;
  } catch {
    return false;
  }
}
