import {
  databaseSettings,
  logSettings,
  mediaSettings,
  metricsSettings,
  proxySettings,
  redisSettings,
  sessionSettings,
  shutdownSettings,
  tokenSettings,
  turnSettings,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';

const rate = (what: string, perSecond: number) =>
  Type.Integer({ default: perSecond, minimum: 0, maximum: 100_000, description: `${what} a second; 0 = no limit.` });
const burst = (what: string, count: number) =>
  Type.Integer({ default: count, minimum: 1, maximum: 1_000_000, description: `${what} at once; at least the rate.` });

/** This app's environment, parsed once; docs/configuration.md is generated from it. */
export const SignalingConfig = Type.Object({
  HOST: Type.String({ default: '0.0.0.0', description: 'Address that the gateway listens on.' }),
  PORT: Type.Integer({
    default: 8082,
    minimum: 0,
    maximum: 65535,
    description: 'Port of WebSockets, `/livez` and `/readyz`; 0 takes a free one and logs it.',
  }),
  ...proxySettings,
  ALLOWED_ORIGINS: Type.Array(Type.String({ pattern: '^(\\*|https?://[^/]+)$' }), {
    default: ['*'],
    expected: 'a list of origins like https://app.example.com, or *',
    description:
      'Web pages that may connect, by origin; `*` lets every page. Clients that are no browsers send none and may connect.',
  }),
  MAX_CONNECTIONS: Type.Integer({
    default: 10_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'WebSockets that this instance holds; more are answered with 503.',
  }),
  PING_INTERVAL_SECONDS: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 60,
    description:
      'How often a connection is pinged, in seconds. One that is silent for two and a half of them is closed.',
  }),
  RATE_LIMIT_SIGNALING_PER_SECOND: rate('Messages that a connection may send', 50),
  RATE_LIMIT_SIGNALING_BURST: burst('Messages that a connection may send', 200),
  RATE_LIMIT_MESSAGES_PER_SECOND: rate('Application messages (`message`) of a connection', 10),
  RATE_LIMIT_MESSAGES_BURST: burst('Application messages of a connection', 30),
  RATE_LIMIT_METADATA_PER_SECOND: rate('Changes of its metadata (`metadata`) of a connection', 1),
  RATE_LIMIT_METADATA_BURST: burst('Changes of its metadata of a connection', 10),
  ...tokenSettings,
  ...sessionSettings,
  ...turnSettings,
  ...mediaSettings,
  MEDIA_NODE_DEAD_SECONDS: Type.Integer({
    default: 5,
    minimum: 1,
    maximum: 3600,
    description: 'How long a media server may be away before its rooms move to another one, in seconds.',
  }),
  ...databaseSettings,
  ...redisSettings,
  NODE_ENV: Type.Optional(Type.String({ description: 'The demo page is served with `development` alone.' })),
  DEMO_DIR: Type.Optional(
    Type.String({ description: 'For development: folder of the built demo page, served under `/demo`.' }),
  ),
  DEMO_API_URL: Type.Optional(
    Type.String({
      pattern: '^https?://.+',
      description: 'For development: where the demo page’s backend finds the API.',
    }),
  ),
  DEMO_API_KEY: Type.Optional(
    Type.String({ secret: true, description: 'For development: secret key that the demo page’s backend uses.' }),
  ),
  ...metricsSettings,
  ...logSettings,
  ...shutdownSettings,
});

export type SignalingConfig = Static<typeof SignalingConfig>;
