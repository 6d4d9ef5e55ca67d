import { Type } from 'typebox';
import { choice, SECRET } from './environment.js';

/** Settings that every app shares; each app spreads those it needs into its own schema. */
export const logSettings = {
  LOG_LEVEL: choice(['error', 'warn', 'info', 'debug'], {
    default: 'info',
    description: 'Least severe level that is logged.',
  }),
  LOG_FORMAT: choice(['json', 'pretty', 'auto'], {
    default: 'auto',
    description: '`json` writes one object a line, `pretty` is for people; `auto` is `pretty` in a terminal.',
  }),
};

export const databaseSettings = {
  DATABASE_URL: Type.String({
    ...SECRET,
    pattern: '^postgres(ql)?://.+',
    expected: 'a URL like postgresql://user:password@host:5432/database',
    description: 'PostgreSQL, the truth.',
  }),
  DATABASE_POOL_MAX: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 500,
    description: 'Connections that this process may open to PostgreSQL.',
  }),
};

export const redisSettings = {
  REDIS_URL: Type.String({
    ...SECRET,
    pattern: '^rediss?://.+',
    expected: 'a URL like redis://:password@host:6379',
    description: 'Redis, the alarm clock. Needs 6.2 or later with maxmemory-policy noeviction.',
  }),
};

export const encryptionSettings = {
  ENCRYPTION_KEYS: Type.Array(Type.String({ pattern: '^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/]{43}=$' }), {
    ...SECRET,
    minItems: 1,
    expected: 'a list like k2:<base64 of 32 bytes>,k1:<base64 of 32 bytes> (openssl rand -base64 32)',
    description:
      'Master keys for secrets at rest, `<id>:<base64 of 32 bytes>` with commas. The first one seals, all of them open: ' +
      'to rotate, put a new one in front.',
  }),
};

export const healthSettings = {
  HEALTH_HOST: Type.String({ default: '0.0.0.0', description: 'Address that `/livez` and `/readyz` listen on.' }),
  HEALTH_PORT: Type.Integer({
    default: 8090,
    minimum: 0,
    maximum: 65535,
    description: 'Port of `/livez` and `/readyz`; 0 takes a free one and logs it.',
  }),
};

export const metricsSettings = {
  METRICS_HOST: Type.String({ default: '127.0.0.1', description: 'Address that `/metrics` listens on.' }),
  METRICS_PORT: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 65535,
    description: 'Port of `GET /metrics`, for Prometheus; 0 serves none.',
  }),
};

export const shutdownSettings = {
  SHUTDOWN_DEADLINE_MS: Type.Integer({
    default: 10_000,
    minimum: 100,
    maximum: 600_000,
    description: 'How long SIGTERM waits for requests and jobs that are under way, in milliseconds.',
  }),
};

/** Where webhooks may go: the API judges it when an endpoint is made, the worker at every attempt. */
export const webhookDestinationSettings = {
  WEBHOOK_ALLOW_HTTP: Type.Boolean({
    default: false,
    description: 'Whether webhooks may go over `http`, unencrypted. For development; the same for API and workers.',
  }),
  WEBHOOK_ALLOWED_CIDRS: Type.Array(Type.String(), {
    default: [],
    expected: 'a list of address ranges like 127.0.0.0/8,::1/128',
    description:
      'Ranges that webhooks may go to although they are not public. For development; the same for API and workers.',
  }),
};
