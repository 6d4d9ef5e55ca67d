import {
  databaseSettings,
  forwardSettings,
  mediaSettings,
  processSettings,
  proxySettings,
  redisSettings,
  sessionSettings,
  tokenSettings,
  turnSettings,
} from '@callplane/runtime';
import { REGION_PATTERN } from '@callplane/core';
import { Type, type Static } from 'typebox';

const rate = (what: string, perSecond: number) =>
  Type.Integer({ default: perSecond, minimum: 0, maximum: 100_000, description: `${what} per second; 0 = no limit.` });
const burst = (what: string, count: number) =>
  Type.Integer({
    default: count,
    minimum: 1,
    maximum: 1_000_000,
    description: `${what} at once; a value below the rate counts as the rate.`,
  });

const pace = (what: string, perMinute: number) =>
  Type.Integer({ default: perMinute, minimum: 0, maximum: 60_000, description: `${what} per minute; 0 = no limit.` });
const atOnce = (what: string, count: number) =>
  Type.Integer({ default: count, minimum: 1, maximum: 100_000, description: `${what} at once.` });

/** Environment variables of the gateway, parsed once at start. docs/configuration.md is generated from this schema. */
export const SignalingConfig = Type.Object({
  HOST: Type.String({ default: '0.0.0.0', description: 'Address that the gateway listens on.' }),
  PORT: Type.Integer({
    default: 8082,
    minimum: 0,
    maximum: 65535,
    description: 'Port for WebSockets, `/livez` and `/readyz`; 0 picks a free port and logs it.',
  }),
  ...proxySettings,
  ALLOWED_ORIGINS: Type.Array(Type.String({ pattern: '^(\\*|https?://[^/]+)$' }), {
    default: ['*'],
    expected: 'a list of origins like https://app.example.com, or *',
    description:
      'Origins of web pages that may connect; `*` allows all. Clients other than browsers send no origin and may connect.',
  }),
  MAX_CONNECTIONS: Type.Integer({
    default: 10_000,
    minimum: 1,
    maximum: 1_000_000,
    description:
      'WebSocket connections that this instance accepts, and sessions of encoders (WHIP); it answers further ones with 503.',
  }),
  PING_INTERVAL_SECONDS: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 60,
    description:
      'How often the gateway pings a connection, in seconds. It closes a connection that is silent for 2.5 intervals.',
  }),
  RATE_LIMIT_SIGNALING_PER_SECOND: rate('Messages from one connection', 50),
  RATE_LIMIT_SIGNALING_BURST: burst('Messages from one connection', 200),
  RATE_LIMIT_MESSAGES_PER_SECOND: rate('Application messages (`message`) from one connection', 10),
  RATE_LIMIT_MESSAGES_BURST: burst('Application messages from one connection', 30),
  RATE_LIMIT_STREAMS_KIB_PER_SECOND: Type.Integer({
    default: 16_384,
    minimum: 0,
    maximum: 10_000_000,
    description:
      'KiB per second of streams, once for each recipient, that the participants of one environment send over this instance; 0 = no limit.',
  }),
  RATE_LIMIT_METADATA_PER_SECOND: rate('Metadata changes (`metadata`) from one connection', 1),
  RATE_LIMIT_METADATA_BURST: burst('Metadata changes from one connection', 10),
  RATE_LIMIT_JOINS_PER_MINUTE: pace('Joins of one participant across all instances', 20),
  RATE_LIMIT_JOINS_BURST: atOnce('Joins of one participant', 10),
  RATE_LIMIT_RESUMPTIONS_PER_MINUTE: pace('Resumptions of one session across all instances', 60),
  RATE_LIMIT_RESUMPTIONS_BURST: atOnce('Resumptions of one session', 20),
  RATE_LIMIT_FAILED_ARRIVALS_PER_MINUTE: pace(
    'Joins and resumptions with a bad token or secret, from one client address (IPv6: its /64) at one instance',
    60,
  ),
  RATE_LIMIT_FAILED_ARRIVALS_BURST: atOnce(
    'Joins and resumptions with a bad token or secret, from one client address',
    30,
  ),
  ...tokenSettings,
  ...sessionSettings,
  ...turnSettings,
  ...mediaSettings,
  MEDIA_NODE_DEAD_SECONDS: Type.Integer({
    default: 5,
    minimum: 1,
    maximum: 3600,
    description:
      'Seconds without a media server before its rooms move; a fifth, at least 1, if it refuses connections.',
  }),
  ...forwardSettings,
  MEDIA_REGION: Type.Optional(
    Type.String({
      pattern: REGION_PATTERN,
      expected: 'a region such as eu-west',
      description:
        'Region of the clients of this instance, unless their token names one. Their sessions go to media servers of ' +
        'the nearest region first.',
    }),
  ),
  ...databaseSettings,
  ...redisSettings,
  ...processSettings,
});

export type SignalingConfig = Static<typeof SignalingConfig>;
