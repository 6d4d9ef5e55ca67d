import { isForwarded } from '@callplane/core';
import { INVARIANTS } from '@callplane/db';
import { queryOf, SETTINGS } from '../../packages/db/src/invariants/invariants.js';
import {
  attemptViolations,
  deliveryViolations,
  violationsOf,
  type Read,
  type Row,
  type Run,
  type Violation,
} from './delivery-checks.js';

/** The invariants of `rtc doctor --deep`. */
export async function brokenInvariants({ backend }: Pick<Run, 'backend'>): Promise<Violation[]> {
  const found: Violation[] = [];
  for (const invariant of INVARIANTS) {
    await backend.client.query('BEGIN');
    for (const setting of SETTINGS) await backend.client.query(setting.text);
    const { text, values } = queryOf(invariant, 1000);
    const { rows } = await backend.client.query<{ broken: number; ids: string[] }>(text, values);
    await backend.client.query('COMMIT');
    const { broken = 0, ids = [] } = rows[0] ?? {};
    if (broken > 0) found.push({ name: invariant.name, detail: ids.join(', ') });
  }
  return found;
}

/** Conditions that must hold once everything has settled. */
export async function finalViolations(run: Run): Promise<Violation[]> {
  const read = async (text: string): Promise<Row[]> => (await run.backend.client.query(text)).rows as Row[];
  return [
    ...(await brokenInvariants(run)),
    ...run.clients.problems.map((detail) => ({ name: 'clients-served', detail })),
    ...unexpectedLines(run),
    ...(await watchedViolations(read)),
    ...(await roomViolations(run, read)),
    ...(await recordingViolations(run, read)),
    ...(await joinViolations(run, read)),
    ...(await deliveryViolations(run, read)),
    ...(await attemptViolations(run, read)),
    ...(await mediaViolations(run, read)),
    ...(await erasureViolations(read)),
  ];
}

const DAY_MS = 86_400_000;

/** Messages that only a defect causes. */
const DEFECTS = ['claim failed', 'delivery attempt not logged', 'event impossible in this state'];

function unexpectedLines({ fleet }: Run): Violation[] {
  return fleet.lines.flatMap(({ process, message, fields }) => {
    const error = fields['error'] as (Error & { code?: string }) | undefined;
    const isDefect =
      DEFECTS.includes(message) ||
      (['task failed', 'request failed'].includes(message) &&
        error !== undefined &&
        !/terminat|timeout|not queryable|was not over within/.test(error.message));
    if (!isDefect) return [];
    return [{ name: 'nothing-unexpected', detail: `${process}: ${message}: ${String(error?.stack)}` }];
  });
}

/**
 * Findings of the triggers (ports/lease-log.ts): one worker at most writes the outcome of an attempt, no attempt comes
 * too early, closed rows stay closed, and each connection of a session has a number of its own.
 */
async function watchedViolations(read: Read): Promise<Violation[]> {
  const rows = await read('SELECT guarantee, what FROM sim.breaks ORDER BY id');
  return rows.map(({ guarantee, what }) => ({ name: String(guarantee), detail: String(what) }));
}

async function roomViolations({ clients, plan }: Run, read: Read): Promise<Violation[]> {
  const found: Violation[] = [];
  const rows = await read(`
    SELECT r.id, r.name, r.status, o.status AS operation, o.last_error
    FROM rooms r LEFT JOIN runtime_operations o ON o.room_id = r.id AND o.kind = 'room.end'`);
  // A key is remembered for a day.
  const isKeyForgotten = plan.faults.some((fault) => fault.do === 'all pause' && fault.forMs > DAY_MS);
  for (const room of clients.rooms.values()) {
    const theirs = rows.filter(({ name }) => name === room.name);
    for (const id of room.ids) {
      if (!theirs.some((row) => row['id'] === id)) found.push({ name: 'acknowledged-writes-exist', detail: id });
    }
    const isKeyed = new Set(room.ids).size <= 1 || isKeyForgotten;
    if (!isKeyed) found.push({ name: 'idempotent-creation', detail: `${room.name} has ids ${room.ids.join(', ')}` });
    if (room.ids.length > 0 && theirs.length > 1 && !isKeyForgotten) {
      found.push({ name: 'idempotent-creation', detail: `${room.name} was created ${theirs.length} times` });
    }
    const row = theirs.find(({ id }) => id === room.ids[0]);
    // Clients repeat their requests once a broken media server is mended.
    const mayFail = row?.['operation'] === 'failed' && !plan.faults.some((fault) => fault.do === 'media fails');
    if (room.endAcceptedAtMs !== undefined && row?.['status'] !== 'ended' && !mayFail) {
      found.push({ name: 'accepted-ends-complete', detail: `${room.ids[0]} is ${String(row?.['status'])}` });
    }
  }
  const unreported = await read(`
    SELECT id FROM rooms r WHERE status = 'ended'
      AND (SELECT count(*) FROM events v WHERE v.room_id = r.id AND v.type = 'room.ended') <> 1`);
  const open = await read(`SELECT id FROM runtime_operations WHERE status = 'pending'`);
  return [...found, ...violationsOf('ends-reported-once', unreported), ...violationsOf('operations-settle', open)];
}

/** An accepted recording ends, its events tell so once and in order, and no room has more than were asked for. */
async function recordingViolations({ clients }: Run, read: Read): Promise<Violation[]> {
  const rows = await read(`
    SELECT r.id, r.room_id, r.status, (
      SELECT string_agg(v.type, ' ' ORDER BY v.sequence) FROM events v
      WHERE v.room_id = r.room_id AND v.body::json -> 'data' -> 'recording' ->> 'id' = r.id
    ) AS types FROM recordings r`);
  const known = new Set(rows.map(({ id }) => id));
  const accepted = [...clients.rooms.values()].flatMap(({ recordings }) => [...recordings]);
  const unasked = [...clients.rooms.values()]
    .flatMap(({ ids, recordingsMax }) => ids.slice(0, 1).map((roomId) => [roomId, recordingsMax] as const))
    .filter(([roomId, max]) => rows.filter((row) => row['room_id'] === roomId).length > max);
  const wrong = rows.filter(
    ({ status, types }) => types !== `recording.started recording.stopped recording.${String(status)}`,
  );
  return [
    ...accepted.filter((id) => !known.has(id)).map((detail) => ({ name: 'acknowledged-writes-exist', detail })),
    ...violationsOf('recordings-end', wrong),
    ...unasked.map(([roomId]) => ({ name: 'recordings-asked-for', detail: roomId })),
  ];
}

async function joinViolations({ clients, fleet }: Run, read: Read): Promise<Violation[]> {
  const found: Violation[] = [];
  for (const { roomId, participantId, sentAtMs, outcome } of clients.participants.joins) {
    if (outcome !== 'joined') continue;
    const room = [...clients.rooms.values()].find(({ ids }) => ids.includes(roomId));
    const person = [...(room?.people.values() ?? [])].find((each) => each.participantId === participantId);
    if (room?.endAcceptedAtMs !== undefined && sentAtMs > room.endAcceptedAtMs) {
      found.push({ name: 'no-join-after-the-end', detail: `${participantId} joined ${roomId}` });
    }
    if (person?.removedAtMs !== undefined && sentAtMs > person.removedAtMs) {
      found.push({ name: 'no-join-after-removal', detail: `${participantId} joined ${roomId}` });
    }
  }
  const untold = await read(`
    SELECT o.id FROM runtime_operations o JOIN participants p ON p.moved_from_id = o.participant_id
    WHERE o.kind = 'participant.move' AND o.last_error ->> 'code' NOT IN ('STEP_FAILED', 'LEASE_EXPIRED')`);
  found.push(...violationsOf('moves-told', untold));
  // Every session that the rows call connected is held by a gateway that lives.
  const held = new Set(fleet.of('gateway').flatMap(({ gateway }) => [...(gateway?.held ?? [])]));
  for (const { id } of await read(`SELECT id FROM participant_sessions WHERE ended_at IS NULL`)) {
    if (!held.has(String(id))) found.push({ name: 'lost-sessions-end', detail: String(id) });
  }
  const ended = new Set(
    (await read(`SELECT id FROM participant_sessions WHERE ended_at IS NOT NULL`)).map(({ id }) => id),
  );
  for (const id of held) if (ended.has(id)) found.push({ name: 'ended-sessions-let-go', detail: id });
  for (const { process, gateway } of fleet.of('gateway')) {
    if (gateway?.isDraining === true) found.push({ name: 'drains-end', detail: process.name });
  }
  return found;
}

/** No server has media of an ended room, or of a participant who was removed or moved. */
async function mediaViolations({ fleet }: Run, read: Read): Promise<Violation[]> {
  const { servers, feeds } = fleet.media;
  const ended = await read(`SELECT id FROM rooms WHERE status = 'ended'`);
  const gone = new Set(ended.map(({ id }) => String(id)));
  const left = servers.flatMap(({ rooms }) => [...rooms.keys()].filter((roomId) => gone.has(roomId)));
  const away = await read(`
    SELECT s.id FROM participant_sessions s JOIN runtime_operations o ON o.participant_id = s.participant_id
    WHERE o.kind IN ('participant.remove', 'participant.move') AND o.status = 'completed' AND s.ended_at IS NOT NULL`);
  const removed = new Set(away.map(({ id }) => String(id)));
  return [
    ...left.map((detail) => ({ name: 'media-of-ended-rooms', detail })),
    ...feeds
      .filter(({ feedId }) => removed.has(feedId.split('-')[0] ?? ''))
      .map(({ feedId, server }) => ({ name: 'media-of-removed', detail: `${feedId} on ${server}` })),
    ...(await forwardViolations({ fleet }, read)),
  ];
}

/** Participants receive the tracks of their room from either server, and the servers forward and keep nothing else. */
async function forwardViolations({ fleet }: Pick<Run, 'fleet'>, read: Read): Promise<Violation[]> {
  const { media } = fleet;
  const kept = media.servers.flatMap(({ portsKept }) => portsKept);
  const found: Violation[] = kept.map((detail) => ({ name: 'ports-freed', detail }));
  const { feeds } = media;
  const rows = await read('SELECT id, feed_id, to_node_id, state FROM media_forwards');
  const held = new Set(fleet.of('gateway').flatMap(({ gateway }) => [...(gateway?.held ?? [])]));
  const pairs = await read(`
    SELECT s.id AS viewer, t.feed_id AS feed FROM session_tracks t
    JOIN participant_sessions p ON p.id = t.session_id AND p.ended_at IS NULL
    JOIN participant_sessions s ON s.room_id = p.room_id AND s.id <> p.id AND s.ended_at IS NULL`);
  const wanted = new Set<string>();
  for (const { viewer, feed } of media.servers.length > 1 ? pairs : []) {
    if (!held.has(String(viewer)) || !feeds.some(({ feedId }) => feedId === feed)) continue;
    const name = media.receivedAs(String(viewer), String(feed));
    if (name === null) found.push({ name: 'tracks-received', detail: `${String(viewer)} lacks ${String(feed)}` });
    else wanted.add(name);
  }
  const unwanted = rows.filter(({ id, state }) => state !== 'up' || !wanted.has(String(id)));
  found.push(...violationsOf('forwards-wanted', unwanted));
  const names = new Set(rows.map(({ id }) => id));
  for (const { feedId, forwards, server } of feeds) {
    const all = isForwarded(feedId) ? [feedId] : [...forwards];
    const strays = all.filter((name) => !names.has(name));
    found.push(...strays.map((name) => ({ name: 'forwards-have-rows', detail: `${name} on ${server}` })));
  }
  return found;
}

/** Events of erased participants are erased once their deliveries have ended. */
async function erasureViolations(read: Read): Promise<Violation[]> {
  const rows = await read(`
    SELECT v.id FROM participant_erasures x JOIN events v ON v.participant_id = x.participant_id
    WHERE v.erased_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM webhook_deliveries d WHERE d.event_id = v.id AND d.status IN ('pending', 'delivering'))`);
  return violationsOf('erasures-complete', rows);
}
