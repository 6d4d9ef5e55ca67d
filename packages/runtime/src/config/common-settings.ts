import { TURN_TTL_SECONDS, type TurnSettings } from '@callplane/core';
import { Type, type Static, type TObject } from 'typebox';
import type { Logger } from '../logging/logger.js';
import { choice, SECRET } from './environment.js';

const STORE_URL = { pattern: '^https?://.+', expected: 'a URL like https://s3.example.com' };

/** Settings that several apps share. Each app spreads the groups that it needs into its own schema. */
export const logSettings = {
  LOG_LEVEL: choice(['error', 'warn', 'info', 'debug'], {
    default: 'info',
    description: 'Lowest severity that is logged.',
  }),
  LOG_FORMAT: choice(['json', 'pretty', 'auto'], {
    default: 'auto',
    description:
      '`json` writes one object per line, `pretty` is for people. `auto` means `pretty` in a terminal and `json` elsewhere.',
  }),
  INSTANCE_ID: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9._-]{1,64}$',
      expected: '1 to 64 letters, digits, dots, hyphens and underscores',
      description:
        'Id of this process, which `/readyz` answers as `instance`. Who started it can tell it from another server.',
    }),
  ),
};

const exporter = (what: string) =>
  choice(['otlp', 'none'], { default: 'otlp', description: `Whether OpenTelemetry gets ${what}.` });

/** OpenTelemetry. The SDK reads further standard settings from the environment. */
export const telemetrySettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: Type.Optional(
    Type.String({
      pattern: '^https?://.+',
      expected: 'a URL like http://collector:4318',
      description: 'OpenTelemetry collector (OTLP over HTTP) for traces, metrics and logs. Without it nothing is sent.',
    }),
  ),
  OTEL_EXPORTER_OTLP_HEADERS: Type.Optional(
    Type.String({ ...SECRET, description: 'Headers for the collector, `<name>=<value>`, separated by commas.' }),
  ),
  OTEL_SERVICE_NAME: Type.Optional(
    Type.String({ description: 'Name of the service in OpenTelemetry; `callplane-<app>` by default.' }),
  ),
  OTEL_RESOURCE_ATTRIBUTES: Type.Optional(
    Type.String({ description: 'Attributes of the process in OpenTelemetry, `<name>=<value>`, separated by commas.' }),
  ),
  OTEL_TRACES_SAMPLER: choice(
    [
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
      'always_on',
      'always_off',
      'traceidratio',
    ],
    { default: 'parentbased_always_on', description: 'Which traces are recorded.' },
  ),
  OTEL_TRACES_SAMPLER_ARG: Type.Optional(
    Type.String({
      pattern: '^(0(\\.[0-9]+)?|1(\\.0+)?)$',
      expected: 'a number from 0 to 1',
      description: 'Share of traces that the ratio samplers record.',
    }),
  ),
  OTEL_TRACES_EXPORTER: exporter('traces'),
  OTEL_METRICS_EXPORTER: exporter('metrics'),
  OTEL_LOGS_EXPORTER: exporter('logs'),
  OTEL_METRIC_EXPORT_INTERVAL: Type.Integer({
    default: 60_000,
    minimum: 100,
    maximum: 3_600_000,
    description: 'Interval of the exports of metrics, in milliseconds.',
  }),
  OTEL_SDK_DISABLED: Type.Boolean({ default: false, description: 'Turns OpenTelemetry off.' }),
};

export const redisSettings = {
  REDIS_URL: Type.String({
    ...SECRET,
    pattern: '^rediss?(\\+sentinel)?://.+',
    expected:
      'a URL like redis://:password@host:6379 or redis+sentinel://host1,host2,host3/name ' +
      '(with TLS rediss:// or rediss+sentinel://)',
    description:
      'Redis, which wakes workers and carries notices. Needs 6.2 or later with maxmemory-policy noeviction. Special ' +
      'characters in user and password are escaped (%40 for @).',
  }),
  REDIS_PASSWORD: Type.Optional(
    Type.String({ ...SECRET, description: 'Password of Redis, if it is not part of `REDIS_URL`.' }),
  ),
  REDIS_CA_FILE: Type.Optional(
    Type.String({
      description:
        'File with the certificates (PEM) of the authorities that may certify Redis and its Sentinels. Without it, the ' +
        "system's authorities are trusted. Needs a `rediss` URL.",
    }),
  ),
  REDIS_CERT_FILE: Type.Optional(
    Type.String({ description: 'File with the certificate (PEM) of this client, if Redis asks for one.' }),
  ),
  REDIS_KEY_FILE: Type.Optional(Type.String({ description: 'File with the private key (PEM) of `REDIS_CERT_FILE`.' })),
  REDIS_SENTINEL_USERNAME: Type.Optional(
    Type.String({
      description: 'User at the Sentinels, if they have users. User and password of `REDIS_URL` are for Redis.',
    }),
  ),
  REDIS_SENTINEL_PASSWORD: Type.Optional(
    Type.String({ ...SECRET, description: 'Password of the Sentinels, if they have one.' }),
  ),
};

export const encryptionSettings = {
  ENCRYPTION_KEYS: Type.Array(Type.String({ pattern: '^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/]{43}=$' }), {
    ...SECRET,
    minItems: 1,
    expected: 'a list like k2:<base64 of 32 bytes>,k1:<base64 of 32 bytes> (openssl rand -base64 32)',
    description:
      'Master keys for secrets at rest, `<id>:<base64 of 32 bytes>`, separated by commas. The first key seals, and all ' +
      'keys open. To rotate, put a new key in front.',
  }),
};

export const healthSettings = {
  HEALTH_HOST: Type.String({ default: '0.0.0.0', description: 'Address that `/livez` and `/readyz` listen on.' }),
  HEALTH_PORT: Type.Integer({
    default: 8090,
    minimum: 0,
    maximum: 65535,
    description: 'Port of `/livez` and `/readyz`; 0 takes a free port and logs it.',
  }),
};

export const metricsSettings = {
  METRICS_HOST: Type.String({ default: '127.0.0.1', description: 'Address that `/metrics` listens on.' }),
  METRICS_PORT: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 65535,
    description: 'Port of `GET /metrics`, for Prometheus; 0 serves no metrics.',
  }),
};

export const shutdownSettings = {
  SHUTDOWN_DEADLINE_MS: Type.Integer({
    default: 10_000,
    minimum: 100,
    maximum: 600_000,
    description: 'How long the process waits for running requests and jobs after SIGTERM, in milliseconds.',
  }),
};

/** The settings of every process that serves. */
export const processSettings = { ...metricsSettings, ...logSettings, ...telemetrySettings, ...shutdownSettings };

/** Allowed webhook destinations. The API checks them when an endpoint is created, the worker at every attempt. */
export const webhookDestinationSettings = {
  WEBHOOK_ALLOW_HTTP: Type.Boolean({
    default: false,
    description: 'Whether webhooks may use unencrypted `http`. For development. Must be the same for API and workers.',
  }),
  WEBHOOK_ALLOWED_CIDRS: Type.Array(Type.String(), {
    default: [],
    expected: 'a list of address ranges like backend=10.0.5.0/24,127.0.0.0/8',
    description:
      'Networks that webhooks may use although their addresses are not public, `<name>=<range>` or `<range>`, separated by ' +
      'commas. Every tenant can then reach them: see docs/operations/security.md. Must be the same for API and workers.',
  }),
  WEBHOOK_ALLOWED_PORTS: Type.Array(Type.String(), {
    default: ['443', '1024-65535'],
    expected: 'a list of ports and ranges like 443,1024-65535',
    description:
      'Ports that webhooks may use on every address. Must be the same for API and workers. `http` URLs without a port ' +
      '(80) only need `WEBHOOK_ALLOW_HTTP`.',
  }),
};

/** Issuer and audience of participant tokens. The API writes these claims, and the gateway checks them. */
export const tokenSettings = {
  TOKEN_ISSUER: Type.String({ default: 'callplane', minLength: 1, description: 'Claim `iss` of participant tokens.' }),
  TOKEN_AUDIENCE: Type.String({
    default: 'callplane-signaling',
    minLength: 1,
    description: 'Claim `aud` of participant tokens.',
  }),
};

/** STUN and TURN servers, for apps that issue ICE servers. */
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
      description: 'coturn’s `static-auth-secret`. Without it, TURN credentials contain only STUN servers.',
    }),
  ),
  TURN_TTL_SECONDS: Type.Integer({
    default: TURN_TTL_SECONDS.default,
    minimum: TURN_TTL_SECONDS.min,
    maximum: TURN_TTL_SECONDS.max,
    description: 'Lifetime of TURN credentials, in seconds.',
  }),
};

/** Reads {@link turnSettings}, and warns when no relay is configured. */
export function readTurnSettings(config: Static<TObject<typeof turnSettings>>, logger: Logger): TurnSettings {
  if (config.TURN_SECRET === undefined) logger.warn('no TURN relay configured', { setting: 'TURN_SECRET' });
  return {
    stunUrls: config.STUN_URLS,
    turnUrls: config.TURN_URLS,
    secret: config.TURN_SECRET ?? null,
    ttlSeconds: config.TURN_TTL_SECONDS,
  };
}

/** The media servers. The gateway places calls on them, and the cleanup worker destroys their rooms. */
export const mediaSettings = {
  MEDIA_NODES: Type.Array(Type.String({ pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?=wss?://.+' }), {
    default: [],
    expected: 'a list like m1=ws://10.0.0.5:8188,m2=ws://10.0.0.6:8188',
    description:
      'Media servers that do not register themselves, `<name>=<WebSocket URL>`, separated by commas. Never ' +
      'give the name of one server to another, because rooms are placed by name. Without media servers, everything ' +
      'but media works.',
  }),
  MEDIA_API_SECRET: Type.Optional(
    Type.String({ ...SECRET, minLength: 8, description: 'Janus’ `api_secret`, the same on every media server.' }),
  ),
  MEDIA_ADMIN_KEY: Type.Optional(
    Type.String({
      ...SECRET,
      minLength: 8,
      description:
        'The VideoRoom plug-in’s `admin_key`, the same on every media server. Room secrets are derived from it.',
    }),
  ),
  MEDIA_ALLOW_OUTDATED: Type.Boolean({
    default: false,
    description:
      'Whether a Janus before 1.4.1 may be used, without retransmissions (RTX). For development: a client can stop such ' +
      'a Janus, and with it every call there.',
  }),
};

/** Rooms on several media servers, for gateways and for the agents beside the servers. */
export const forwardSettings = {
  MEDIA_NODES_PER_ROOM: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 16,
    description:
      'Media servers that the sessions of one room may be on. With more than 1, a room whose servers are full uses ' +
      'another one. Must be equal on all gateways and agents.',
  }),
  MEDIA_FORWARD_PORTS: Type.String({
    default: '29000-29999',
    pattern: '^[0-9]{4,5}-[0-9]{4,5}$',
    expected: 'a range of ports such as 29000-29999',
    description:
      'UDP ports for feeds from other media servers, two for each, below 32768 against other programs; agents answer ' +
      'probes on the last one. One environment gets at most half. Equal on all gateways and agents.',
  }),
};

/** The store of recordings, for the apps that write to it or read from it. */
export const recordingSettings = {
  RECORDINGS_FOLDER: Type.Optional(
    Type.String({
      pattern: '^/.',
      expected: 'an absolute path',
      description:
        'Folder of recordings and of what media servers have shipped, the same for API, recorders and agents. Without ' +
        'it and `RECORDINGS_S3_BUCKET`, nothing is recorded.',
    }),
  ),
  RECORDINGS_S3_BUCKET: Type.Optional(
    Type.String({ description: 'Bucket of an S3-compatible store for recordings, in place of `RECORDINGS_FOLDER`.' }),
  ),
  RECORDINGS_S3_ENDPOINT: Type.Optional(
    Type.String({
      ...STORE_URL,
      description: 'Address of the S3-compatible store. Default: AWS in `RECORDINGS_S3_REGION`.',
    }),
  ),
  RECORDINGS_S3_LINK_ENDPOINT: Type.Optional(
    Type.String({
      ...STORE_URL,
      description: 'Address of the same store for links to files, if browsers do not reach `RECORDINGS_S3_ENDPOINT`.',
    }),
  ),
  RECORDINGS_S3_REGION: Type.String({ default: 'us-east-1', description: 'Region of the bucket.' }),
  RECORDINGS_S3_PATH_STYLE: Type.Optional(
    Type.Boolean({
      description:
        'Whether the bucket is in the path of an address, and not in its host. Default: `true` with ' +
        '`RECORDINGS_S3_ENDPOINT`.',
    }),
  ),
  RECORDINGS_S3_ENCRYPTION: choice(['none', 'AES256', 'aws:kms'], {
    default: 'none',
    description: 'Encryption that the store is asked for with each object. `none` leaves it to the bucket.',
  }),
  RECORDINGS_S3_ACCESS_KEY_ID: Type.Optional(
    Type.String({
      description:
        'Access key of the store. Without it, the AWS SDK finds credentials, such as the role of the machine or pod.',
    }),
  ),
  RECORDINGS_S3_SECRET_ACCESS_KEY: Type.Optional(
    Type.String({ ...SECRET, description: 'Secret of `RECORDINGS_S3_ACCESS_KEY_ID`.' }),
  ),
};

/** How long a session outlives its connection. The gateway's timer and the cleanup worker's sweep use it. */
export const sessionSettings = {
  ROSTER_FULL_MAX: Type.Integer({
    default: 100,
    minimum: 2,
    maximum: 1000,
    description:
      'Participants up to which a client gets the whole roster of its room and every change. A larger room is paged. Must be equal on all instances.',
  }),
  RECONNECT_GRACE_SECONDS: Type.Integer({
    default: 15,
    minimum: 1,
    maximum: 300,
    description: 'How long a session waits for its client to reconnect after the connection was lost, in seconds.',
  }),
};

export const proxySettings = {
  TRUST_PROXY: Type.Array(Type.String(), {
    default: [],
    description:
      'Addresses or CIDR ranges of the proxies in front (also `loopback`, `linklocal`, `uniquelocal`), or the number of ' +
      'proxies. Only addresses in `X-Forwarded-For` that these proxies have added are trusted.',
  }),
  DRAIN_DELAY_MS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 300_000,
    description:
      'How long the process accepts connections after SIGTERM although `/readyz` says 503, in milliseconds, before it ' +
      'drains. For load balancers that learn late of an instance that stops. SHUTDOWN_DEADLINE_MS begins afterwards.',
  }),
};
