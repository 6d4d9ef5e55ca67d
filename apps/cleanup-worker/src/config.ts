import { LEASE_SECONDS } from '@callplane/core';
import {
  databaseSettings,
  healthSettings,
  mediaSettings,
  processSettings,
  redisSettings,
  sessionSettings,
  SECRET,
} from '@callplane/runtime';
import { Type, type Static } from 'typebox';

/** The environment variables of this app, parsed once at its start. The source of docs/configuration.md. */
export const CleanupWorkerConfig = Type.Object({
  ...databaseSettings,
  ...redisSettings,
  LEASE_MS: Type.Integer({
    default: LEASE_SECONDS * 1000,
    minimum: 100,
    maximum: 3_600_000,
    description:
      "Lease of a claimed operation, in milliseconds. If its worker dies, the operation is due again when the lease expires. The default is the contract's value; tests shorten it.",
  }),
  SWEEP_INTERVAL_MS: Type.Integer({
    default: 5000,
    minimum: 50,
    maximum: 10_000,
    description:
      'Interval in milliseconds between scans for due rows that no job announced, and between comparisons of the database with signaling instances and media servers.',
  }),
  ROOM_EMPTY_TIMEOUT_SECONDS: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 604_800,
    description:
      'Seconds until a room without participants ends automatically, from its creation or from the time at which the last ' +
      'participant left; 0 keeps it open. Applies to rooms whose `emptyTimeoutSeconds` is null.',
  }),
  ROOM_RETENTION_DAYS: Type.Integer({
    default: 90,
    minimum: 0,
    maximum: 3650,
    description:
      'Days after its end until a room is deleted, with its participants, sessions, tokens and operations; 0 = never. Events and deliveries have their own retention of 30 days.',
  }),
  TURN_ADMIN_URLS: Type.Array(Type.String({ pattern: '^telnet://[^/@]+:[0-9]{1,5}$' }), {
    default: [],
    expected: 'a list like telnet://10.0.0.5:5766,telnet://10.0.0.6:5766',
    description:
      'Administration interfaces of all TURN servers, separated by commas. The worker uses them to close the relays of ' +
      'ended sessions. Without them, a relay stays open for as long as its client refreshes it.',
  }),
  TURN_ADMIN_PASSWORD: Type.Optional(
    Type.String({
      ...SECRET,
      pattern: '^[!-~]{8,128}$',
      expected: '8 to 128 printable characters without spaces',
      description: 'coturn’s `cli-password`, the same on every TURN server.',
    }),
  ),
  TLS_SERVERS: Type.Array(Type.String({ pattern: '^[^/@\\s]+:[0-9]{1,5}$' }), {
    default: [],
    maxItems: 20,
    expected: 'a list like callplane.example.com:443,turn.example.com:443',
    description:
      'TLS servers of this deployment as clients reach them, `<host>:<port>`, separated by commas. The worker looks at ' +
      'their certificates every ten minutes and reports when they expire.',
  }),
  ...sessionSettings,
  ...mediaSettings,
  ...healthSettings,
  ...processSettings,
});

export type CleanupWorkerConfig = Static<typeof CleanupWorkerConfig>;
