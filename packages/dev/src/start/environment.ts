import type { LocalSecrets } from './secrets.js';
import type { LocalServers } from './servers.js';
import type { Settings } from './settings.js';

/** The environment of the apps and the command line: this process' own, with defaults for unset variables. */
export function appEnvironment(settings: Settings, secrets: LocalSecrets, servers: LocalServers): NodeJS.ProcessEnv {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  return {
    NODE_ENV: 'development',
    HEALTH_HOST: '127.0.0.1',
    // The apps write to files, so they cannot detect that their output is shown in a terminal.
    ...(process.stdout.isTTY ? { LOG_FORMAT: 'pretty' } : {}),
    RATE_LIMIT_READS_PER_SECOND: '0',
    RATE_LIMIT_WRITES_PER_SECOND: '0',
    // There is no load balancer in front.
    DRAIN_IDLE_MS: '500',
    // A receiver under development listens on this machine, without TLS. No other setting permits such addresses.
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8,::1/128',
    ENCRYPTION_KEYS: secrets.encryptionKeys,
    ...servers.turn,
    ...servers.media,
    ...given,
    HOST: settings.host,
    PORT: String(settings.port),
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
  };
}
