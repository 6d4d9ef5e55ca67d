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

/** What a participant token says about who made it and for whom: the API writes it, the gateway compares it. */
export const tokenSettings = {
  TOKEN_ISSUER: Type.String({ default: 'callplane', minLength: 1, description: 'Claim `iss` of participant tokens.' }),
  TOKEN_AUDIENCE: Type.String({
    default: 'callplane-signaling',
    minLength: 1,
    description: 'Claim `aud` of participant tokens.',
  }),
};

/** STUN and TURN, for whoever issues ICE servers. */
export const turnSettings = {
  STUN_URLS: Type.Array(Type.String({ pattern: '^stuns?:.+' }), {
    default: [],
    description: 'STUN servers, e.g. `stun:turn.example.com:3478`.',
  }),
  TURN_URLS: Type.Array(Type.String({ pattern: '^turns?:.+' }), {
    default: [],
    description: 'TURN servers, e.g. `turn:turn.example.com:3478?transport=udp`.',
  }),
  TURN_SECRET: Type.Optional(
    Type.String({
      ...SECRET,
      minLength: 8,
      description: 'coturn’s `static-auth-secret`. Without it TURN credentials name STUN servers alone.',
    }),
  ),
  TURN_TTL_SECONDS: Type.Integer({
    default: 3600,
    minimum: 60,
    maximum: 86_400,
    description: 'Lifetime of TURN credentials, in seconds.',
  }),
};

/** The media servers: the gateway puts calls on them, the cleanup worker clears them. */
export const mediaSettings = {
  MEDIA_NODES: Type.Array(Type.String({ pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?=wss?://.+' }), {
    default: [],
    expected: 'a list like m1=ws://10.0.0.5:8188,m2=ws://10.0.0.6:8188',
    description:
      'Media servers, `<name>=<WebSocket URL>` with commas. A name stays with its server: rooms are placed by it. ' +
      'Without any, everything but media works.',
  }),
  MEDIA_API_SECRET: Type.Optional(
    Type.String({ ...SECRET, minLength: 8, description: 'Janus’ `api_secret`, the same on every media server.' }),
  ),
  MEDIA_ADMIN_KEY: Type.Optional(
    Type.String({
      ...SECRET,
      minLength: 8,
      description: 'The VideoRoom plug-in’s `admin_key`, the same on every media server; room secrets derive from it.',
    }),
  ),
};

/** How long a session outlives its connection: the gateway's timer and the cleanup worker's sweep go by it. */
export const sessionSettings = {
  RECONNECT_GRACE_SECONDS: Type.Integer({
    default: 15,
    minimum: 1,
    maximum: 300,
    description: 'How long a session waits for its client to come back after its connection was lost, in seconds.',
  }),
};

/** Of apps that callers reach through a load balancer. */
export const proxySettings = {
  TRUST_PROXY: Type.Array(Type.String(), {
    default: [],
    description:
      'Addresses or CIDR ranges of the proxies in front (also `loopback`, `linklocal`, `uniquelocal`), or one number: how ' +
      'many proxies there are. Only what they say in `X-Forwarded-For` is believed.',
  }),
};
