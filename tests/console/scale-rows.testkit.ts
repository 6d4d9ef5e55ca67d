import { EVENT_TYPES, firstIdAt } from '@callplane/core';
import type pg from 'pg';

const ROOMS = 100_000;
const DELIVERIES = 1_000_000;
const ENDPOINTS = 10;
/** Moments at which events happened, evenly over the days. Each event has one delivery to each endpoint. */
const MOMENTS = 10_000;
const EVENTS_OF_MOMENT = DELIVERIES / MOMENTS / ENDPOINTS;
/** Below the retention, so that no worker deletes rows meanwhile. */
const DAYS = 28;
const DAY_MS = 86_400_000;
/** Participants of the newest room. */
const PARTICIPANTS = 500;
/** Moments of one statement, so that none takes minutes. */
const CHUNK = 2_000;

/** What the pages of the test show. */
export interface ScaleRows {
  endpointId: string;
  /** The newest room, with many participants and events. */
  roomId: string;
  /** A delivery that has failed. */
  failedId: string;
  /** The middle of the time in which the deliveries were made. */
  middle: Date;
}

interface Moment {
  n: number;
  at: Date;
  /** The part of an id that says this time. */
  prefix: string;
}

/** Fills an environment with rooms, events, deliveries and attempts, in an order of ids like that of real ones. */
export async function fillEnvironment(client: pg.Client, environmentId: string): Promise<ScaleRows> {
  const now = Date.now();
  const moments = Array.from({ length: MOMENTS }, (_, n): Moment => {
    const at = new Date(now - (DAYS * DAY_MS * (MOMENTS - n)) / MOMENTS);
    return { n, at, prefix: firstIdAt('delivery', at).slice('dlv_'.length, 'dlv_'.length + 10) };
  });
  await addEndpoints(client, environmentId);
  for (let from = 0; from < MOMENTS; from += CHUNK) {
    const chunk = JSON.stringify(moments.slice(from, from + CHUNK));
    await addRooms(client, environmentId, chunk);
    await addDeliveries(client, environmentId, chunk);
  }
  const newest = moments[MOMENTS - 1]!;
  const roomId = idOf('room', newest.prefix, ROOMS / MOMENTS - 1);
  await addParticipants(client, environmentId, roomId);
  await client.query('VACUUM ANALYZE');
  return {
    endpointId: `whep_${'0'.repeat(26)}`,
    roomId,
    // Of the last moment with a number that is a multiple of 100: see FAILED.
    failedId: idOf('dlv', moments[MOMENTS - 100]!.prefix, 0),
    middle: moments[MOMENTS / 2]!.at,
  };
}

const FAILED = `m.n % 100 = 0 AND e = 0`;
/** Of 1,000,000 deliveries, one has this reason. */
const RARE = `m.n = 100 AND e = 0 AND k = 0`;
const MOMENT_COLUMNS = 'AS m (n int, at timestamptz, prefix text)';
const idOf = (kind: string, prefix: string, n: number) => `${kind}_${prefix}${String(n).padStart(16, '0')}`;

async function addEndpoints(client: pg.Client, environmentId: string): Promise<void> {
  await client.query(
    `INSERT INTO webhook_endpoints (id, environment_id, url, events, enabled, signing_key_version, created_at, updated_at, proven)
     SELECT 'whep_' || lpad(n::text, 26, '0'), $1, 'https://receiver-' || n || '.example.com/webhooks', ARRAY['*'], true, 1,
       now(), now(), true
     FROM generate_series(0, ${ENDPOINTS - 1}) n`,
    [environmentId],
  );
  await client.query(
    `INSERT INTO webhook_secrets (endpoint_id, version, secret_sealed, created_at)
     SELECT id, 1, 's1.k1.x', now() FROM webhook_endpoints WHERE environment_id = $1`,
    [environmentId],
  );
}

async function addRooms(client: pg.Client, environmentId: string, moments: string): Promise<void> {
  const perMoment = ROOMS / MOMENTS;
  await client.query(
    `INSERT INTO rooms (id, environment_id, name, metadata, status, max_participants, created_at, started_at, ended_at)
     SELECT 'room_' || m.prefix || lpad(k::text, 16, '0'), $1, 'Consultation ' || m.n * ${perMoment} + k, '{}', s.status, 10,
       m.at, CASE WHEN s.status <> 'created' THEN m.at END, CASE WHEN s.status = 'ended' THEN m.at END
     FROM jsonb_to_recordset($2) ${MOMENT_COLUMNS}, generate_series(0, ${perMoment - 1}) k,
       LATERAL (SELECT CASE WHEN m.n >= ${MOMENTS - 100} THEN 'active' WHEN m.n % 50 = 0 THEN 'created' ELSE 'ended' END
         AS status) s`,
    [environmentId, moments],
  );
}

async function addDeliveries(client: pg.Client, environmentId: string, moments: string): Promise<void> {
  const types = `(ARRAY[${EVENT_TYPES.map((type) => `'${type}'`).join(', ')}])`;
  const typeOf = `${types}[1 + (m.n * ${EVENTS_OF_MOMENT} + k) % ${EVENT_TYPES.length}]`;
  const source = `jsonb_to_recordset($1) ${MOMENT_COLUMNS}, generate_series(0, ${EVENTS_OF_MOMENT - 1}) k`;
  const each = `${source}, generate_series(0, ${ENDPOINTS - 1}) e`;
  const deliveryId = `m.prefix || lpad((k * ${ENDPOINTS} + e)::text, 16, '0')`;
  await client.query(
    `INSERT INTO events (id, environment_id, type, body, created_at)
     SELECT 'evt_' || m.prefix || lpad(k::text, 16, '0'), $2, ${typeOf}, '{"filler":"' || repeat('x', 300) || '"}', m.at
     FROM ${source}`,
    [moments, environmentId],
  );
  await client.query(
    `INSERT INTO webhook_deliveries (id, environment_id, endpoint_id, event_id, event_type, status, failure_reason,
       run_attempts, url, secret_version, due_at, run_started_at, created_at, completed_at)
     SELECT 'dlv_' || ${deliveryId}, $2, 'whep_' || lpad(e::text, 26, '0'), 'evt_' || m.prefix || lpad(k::text, 16, '0'),
       ${typeOf}, s.status, CASE WHEN s.status = 'failed' THEN CASE WHEN ${RARE} THEN 'unsafe_destination' ELSE 'rejected' END END,
       1, 'https://receiver-' || e || '.example.com/webhooks', 1, m.at, m.at, m.at, CASE WHEN s.status <> 'pending' THEN m.at END
     FROM ${each},
       LATERAL (SELECT CASE WHEN m.n >= ${MOMENTS - 20} AND e = 9 THEN 'pending' WHEN ${FAILED} THEN 'failed' ELSE 'succeeded' END
         AS status) s`,
    [moments, environmentId],
  );
  await client.query(
    `INSERT INTO webhook_attempts (id, delivery_id, replay_count, attempt, url, signing_key_version, started_at,
       duration_ms, outcome, status_code, address, dns_ms, connect_ms, tls_ms, first_byte_ms)
     SELECT 'att_' || ${deliveryId}, 'dlv_' || ${deliveryId}, 0, 1, 'https://receiver-' || e || '.example.com/webhooks', 1, m.at,
       84, CASE WHEN ${FAILED} THEN 'response' ELSE 'success' END, CASE WHEN ${FAILED} THEN 404 ELSE 200 END, '192.0.2.1',
       4, 20, 30, 28
     FROM ${each}`,
    [moments],
  );
}

/** Participants who are in the newest room, with a token of each. */
async function addParticipants(client: pg.Client, environmentId: string, roomId: string): Promise<void> {
  await client.query(
    `INSERT INTO participants (id, environment_id, room_id, external_id, name, metadata, role, created_at,
       token_expires_at, connected_at)
     SELECT 'part_' || lpad(n::text, 26, '0'), $1, $2, 'user-' || n, 'Participant ' || n, '{}', 'participant', now(),
       now() + interval '1 hour', now() - n * interval '1 second'
     FROM generate_series(1, ${PARTICIPANTS}) n`,
    [environmentId, roomId],
  );
  await client.query(
    `INSERT INTO participant_tokens (id, participant_id, permissions, created_at, expires_at)
     SELECT 'tok_' || right(id, 26), id, ARRAY['room:join'], created_at, token_expires_at
     FROM participants WHERE room_id = $1`,
    [roomId],
  );
}
