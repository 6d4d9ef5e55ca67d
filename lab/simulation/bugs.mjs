/**
 * Seeded bugs: replacements of text in the sources, which bundle.mjs and `npm run torture -- --bug` apply to copies. Each of
 * them breaks a guarantee: a bug that another defence of the product makes harmless is combined with the loss of that defence.
 */

const LEASES = 'packages/db/src/operations/operation-leases.ts';
const ROOM_END = 'packages/db/src/operations/room-end.ts';
const REMOVAL = 'packages/db/src/operations/participant-removal.ts';
const WORK = 'packages/operations/src/work.ts';
const DELIVERY_LEASES = 'packages/db/src/webhooks/delivery-leases.ts';
const CLAIMS = 'packages/db/src/webhooks/claims.ts';
const TURNS = 'apps/webhook-worker/src/deliveries/turns.ts';
const SCAN = 'apps/webhook-worker/src/deliveries/scan.ts';
const DELIVERY_SWEEP = 'packages/db/src/webhooks/delivery-sweep.ts';
const DELIVERY_SQL = 'packages/db/src/webhooks/webhooks.sql.ts';
const DELIVERY = 'packages/core/src/webhooks/delivery.ts';
const EVENTS = 'packages/db/src/events/write-events.ts';
const JOIN_WRITES = 'packages/db/src/sessions/join-writes.ts';
const JOIN_LOCKS = 'packages/db/src/sessions/join-locks.ts';
const DECIDE_JOINS = 'packages/core/src/sessions/session.ts';
const LOST = 'packages/db/src/sessions/lost-sessions.ts';
const RESUME = 'packages/db/src/sessions/session-connection.ts';
const ENDED_SESSIONS = 'packages/db/src/sessions/session-ends.ts';
const END_STEPS = 'apps/cleanup-worker/src/operations/room-end/room-end.ts';
const RECORDING_ENDS = 'packages/db/src/recordings/recording-ends.ts';
const MOVES = 'packages/db/src/operations/participant-move.ts';
const JOINS = 'packages/db/src/sessions/join-sessions.ts';
const MEDIA_FORWARDS = 'packages/db/src/media/media-forwards.ts';
const PLACEMENT = 'packages/db/src/media/room-placement.ts';
const IDEMPOTENCY = 'packages/db/src/idempotency/idempotency.repository.ts';

/**
 * @param {string} name
 * @param {string} what
 * @param {...[file: string, find: string, replace: string]} patches
 */
const bug = (name, what, ...patches) => ({
  name,
  what,
  patches: patches.map(([file, find, replace]) => ({ file, find, replace })),
});

/** @type {[file: string, find: string, replace: string]} */
const NO_SCAN_OF_DELIVERIES = [
  SCAN,
  'await this.scan(hasRedis);',
  'if (this.intervalMs < 0) await this.scan(hasRedis);',
];
/** @type {[file: string, find: string, replace: string]} */
const NO_SWEEP_OF_LEASES = [
  DELIVERY_SWEEP,
  'lease_expires_at <= now() ORDER BY',
  "lease_expires_at <= now() - interval '1 day' ORDER BY",
];

export const BUGS = [
  // Operations.
  bug('claim-held-operation', 'a worker claims an operation that another one holds', [
    LEASES,
    'AND ${isUnleased} AND NOT ${isExhausted}\n    RETURNING id, kind',
    'AND NOT ${isExhausted}\n    RETURNING id, kind',
  ]),
  bug('settle-without-token', 'an operation is settled without the fencing token', [
    LEASES,
    'await settle(db, holds(claim), end)',
    'await settle(db, Prisma.sql`id = ${claim.id}`, end)',
  ]),
  bug('fence-without-expiry', 'the fence of operations ignores that the lease has expired', [
    LEASES,
    ' AND lease_expires_at > now()`;',
    '`;',
  ]),
  bug('fence-without-token', 'the fence of operations ignores whose lease it is', [
    LEASES,
    'id = ${claim.id} AND lease_token = ${claim.leaseToken}::uuid AND lease_expires_at > now()`',
    'id = ${claim.id} AND lease_expires_at > now()`',
  ]),
  bug('operation-never-expires', 'the lease of a dead worker never ends', [
    'packages/db/src/operations/operation.sql.ts',
    '(lease_expires_at IS NULL OR lease_expires_at <= now())',
    '(lease_expires_at IS NULL)',
  ]),
  bug('retry-without-delay', 'a failed operation is due again at once', [
    LEASES,
    'due_at = coalesce(now() + ${delayMs}::int',
    'due_at = coalesce(now() + 0 * ${delayMs}::int',
  ]),
  bug('no-scan-of-retries', 'no scan finds operations after their first attempt', [
    LEASES,
    "WHERE status = 'pending' AND due_at <= now() AND ${isUnleased}",
    "WHERE status = 'pending' AND run_attempts = 0 AND due_at <= now() AND ${isUnleased}",
  ]),
  bug('no-scan-of-operations', 'no scan finds operations whose job was lost', [
    LEASES,
    "WHERE status = 'pending' AND due_at <= now() AND ${isUnleased}",
    "WHERE false AND status = 'pending' AND due_at <= now() AND ${isUnleased}",
  ]),
  bug('event-after-the-commit', 'room.ended is written in a transaction after the one that completes the operation', [
    WORK,
    'return write(tx, claim, now);\n  });',
    'return [] as Awaited<ReturnType<typeof write>>;\n  });\n  deliveries.push(...(await database.transaction((own) => write(own, claim, now))));',
  ]),
  bug('room-not-marked', 'the clean-up forgets to mark the room ended', [
    ROOM_END,
    "SET status = 'ended', ended_at = ${now.toISOString()}::timestamptz",
    'SET version = version',
  ]),
  bug(
    'sessions-left-in-room',
    'the end of a room ends one batch of its sessions, and a batch has one',
    // The batch of production is larger than the rooms of a simulation.

    [ENDED_SESSIONS, 'const BATCH = 2000;', 'const BATCH = 1;'],
    [ENDED_SESSIONS, 'return { left: present.length, ended };', 'return { left: 0, ended };'],
  ),
  bug('presence-kept', 'the end of a room ends no session', [
    ENDED_SESSIONS,
    'present.map(({ id }) => id),',
    'present.map(({ id }) => id).slice(0, 0),',
  ]),
  bug('removal-keeps-session', 'a removal ends no session', [
    ENDED_SESSIONS,
    'return endPresence(tx, [participantId], reason, now);',
    'return endPresence(tx, [], reason, now);',
  ]),
  bug('removal-keeps-tokens', 'a removal revokes no token', [
    REMOVAL,
    'WHERE revoked_at IS NULL AND participant_id IN',
    'WHERE revoked_at IS NULL AND false AND participant_id IN',
  ]),
  bug('end-leaves-room-open', 'an accepted end leaves the room open until its clean-up', [
    ROOM_END,
    "SET status = 'ending', version = version + 1",
    'SET version = version + 1',
  ]),
  // Deliveries.
  bug(
    'settle-delivery-unfenced',
    'a worker that lost its lease writes over the outcome of another',
    [
      DELIVERY_LEASES,
      'WHERE d.id = ANY(ARRAY(SELECT unnest(${ids}::text[]))) AND d.lease_token = new.token',
      'WHERE d.id = ANY(ARRAY(SELECT unnest(${ids}::text[])))',
    ],
    [DELIVERY_LEASES, 'WHERE d.id = ended.id AND d.lease_token = ended.token', 'WHERE d.id = ended.id'],
  ),
  bug(
    'attempt-counted-at-settle',
    'an attempt counts when it is settled, not when it is claimed',
    [CLAIMS, 'run_attempts = d.run_attempts + 1,', 'run_attempts = d.run_attempts,'],
    [DELIVERY_LEASES, 'SET status = ended.status,', 'SET status = ended.status, run_attempts = d.run_attempts + 1,'],
  ),
  bug('lease-of-delivery-never-ends', 'no sweep ends the leases of dead webhook workers', NO_SWEEP_OF_LEASES),
  bug('expired-attempt-not-logged', 'the sweep of leases gives the attempt of the dead worker back', [
    DELIVERY_SWEEP,
    'due_at = now(), lease_token = NULL',
    'run_attempts = d.run_attempts - 1, due_at = now(), lease_token = NULL',
  ]),
  bug('delivery-without-delay', 'a failed delivery is due again at once', [
    DELIVERY_LEASES,
    'ELSE now() + ended.delay_ms * ',
    'ELSE now() + 0 * ended.delay_ms * ',
  ]),
  bug('success-retried', 'a delivery is retried after a success that took longer than a second', [
    'apps/webhook-worker/src/deliveries/attempt.ts',
    'outcome: attempt.outcome,\n    statusCode: attempt.statusCode,\n    runAgeMs',
    "outcome: attempt.durationMs > 1000 ? 'timeout' : attempt.outcome,\n    statusCode: attempt.durationMs > 1000 ? null : attempt.statusCode,\n    runAgeMs",
  ]),
  bug('failure-taken-as-success', 'a 500 counts as a success', [
    DELIVERY,
    'if (statusCode >= 200 && statusCode <= 299)',
    'if ((statusCode >= 200 && statusCode <= 299) || statusCode === 500)',
  ]),
  bug('nine-attempts', 'a run has nine attempts', [
    DELIVERY,
    "if (delayMs === null) return { status: 'failed', reason: 'attempts_exhausted' };",
    "if (delayMs === null && runAttempt > 8) return { status: 'failed', reason: 'attempts_exhausted' };\n  if (delayMs === null) return { status: 'pending', delayMs: 1000 };",
  ]),
  bug('order-ignored', 'an ordered endpoint gets the latest due event of a room, whichever events are open before it', [
    CLAIMS,
    'room_id = room.room_id AND (replay_count > 0) = ${isReplay}::boolean\n   ORDER BY sequence LIMIT 1)',
    "room_id = room.room_id AND (replay_count > 0) = ${isReplay}::boolean\n     AND status = 'pending' AND due_at <= now() ORDER BY sequence DESC LIMIT 1)",
  ]),
  bug('order-across-lines', 'a replay and a first run of one room wait for each other', [
    CLAIMS,
    "WHERE status = 'pending' AND due_at <= now() ORDER BY due_at LIMIT 1\n   ) head",
    "WHERE status = 'pending' AND due_at <= now() AND NOT EXISTS (SELECT 1 FROM webhook_deliveries b WHERE b.endpoint_id = ${endpointId} AND b.room_id = room.room_id AND b.id <> line.id AND b.status <> 'delivering') ORDER BY due_at LIMIT 1\n   ) head",
  ]),
  bug('limit-forgets-attempts', 'a claim does not count the deliveries in flight', [
    CLAIMS,
    "SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = ${endpointId} AND status = 'delivering')))",
    "SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = ${endpointId} AND status = 'delivering' AND false)))",
  ]),
  bug('claims-at-once', 'claims of one endpoint with limits run at once, on snapshots without each other', [
    CLAIMS,
    'WHERE id = ${request.endpointId} FOR NO KEY UPDATE`;',
    'WHERE id = ${request.endpointId}`;',
  ]),
  bug('no-scan-of-deliveries', 'no scan finds deliveries whose job was lost', NO_SCAN_OF_DELIVERIES),
  bug(
    'deliveries-never-woken',
    'no process adds a turn, and no scan finds deliveries without one',
    [
      'packages/queue/src/jobs/jobs.ts',
      'const { endpointId, environmentId, slotMs, lane = laneOf(slotMs), ticket = 0, priority, delayMs } = turn;',
      "const { endpointId, environmentId, slotMs, ticket = 0, priority, delayMs } = turn;\n  const lane = 'none' as Lane;",
    ],
    NO_SCAN_OF_DELIVERIES,
  ),
  bug(
    'take-over-without-a-stall',
    'a worker ends the leases of all other turns of its endpoint',
    [TURNS, 'if (isStalled) await this.#takeOver(turn, run);', 'await this.#takeOver(turn, run);'],
    [
      DELIVERY_SWEEP,
      "status = 'delivering' AND lease_token = ANY(${[...tokens]}::uuid[])",
      "status = 'delivering' AND ${[...tokens]}::uuid[] IS NOT NULL",
    ],
  ),
  bug(
    'one-token-for-all-workers',
    'the worker that takes a turn over has the token of the one before, which still sends',
    [TURNS, '(run % 0x10000)', '(run % 1)'],
    [TURNS, 'Array.from({ length: run - first }', 'Array.from({ length: run - first + 1 }'],
  ),
  bug(
    'stalled-turn-not-taken-over',
    'no worker takes the rows of a stalled turn over, and no sweep ends their leases',
    [TURNS, 'if (isStalled) await this.#takeOver(turn, run);', ''],
    NO_SWEEP_OF_LEASES,
  ),
  bug(
    'turn-settled-by-its-token',
    'the outcome of one delivery of a turn is written to all deliveries that the turn has in flight',
    [DELIVERY_LEASES, 'WHERE d.id = ended.id AND d.lease_token = ended.token', 'WHERE d.lease_token = ended.token'],
    [
      DELIVERY_LEASES,
      'SELECT attempt_id, id, endpoint_id,',
      'SELECT DISTINCT ON (attempt_id) attempt_id, id, endpoint_id,',
    ],
  ),
  bug('scans-share-a-token', 'all turns of scans without Redis have one fencing token', [
    TURNS,
    'const token = randomUUID();',
    "const token = '00000000-0000-4000-8000-000000000000';",
  ]),
  bug('fan-out-to-all-tenants', 'an event goes to the endpoints of every tenant', [
    EVENTS,
    'WHERE e.environment_id = event.environment_id AND e.deleted_at IS NULL AND ${chosen}',
    'WHERE e.deleted_at IS NULL AND ${chosen}',
  ]),
  bug('event-without-deliveries', 'the third event of a room gets no deliveries', [
    EVENTS,
    'AND e.deleted_at IS NULL AND ${chosen} OFFSET 0',
    'AND e.deleted_at IS NULL AND ${chosen} AND event.sequence IS DISTINCT FROM 3 OFFSET 0',
  ]),
  bug('retries-send-other-bytes', 'a retry sends other bytes', [
    CLAIMS,
    's.secret_sealed, v.body, v.traceparent\n',
    "s.secret_sealed, CASE WHEN d.run_attempts > 1 THEN v.body || ' ' ELSE v.body END AS body, v.traceparent\n",
  ]),
  bug('replay-keeps-its-number', 'a replay does not count', [
    DELIVERY_SQL,
    'replay_count = replay_count + 1, run_attempts = 0',
    'replay_count = replay_count, run_attempts = 0',
  ]),
  bug('replay-of-a-running-delivery', 'a delivery in flight can be replayed', [
    'packages/core/src/webhooks/replay.ts',
    "if (input.status === 'pending' || input.status === 'delivering') return 'DELIVERY_NOT_TERMINAL';",
    "if (input.status === 'pending') return 'DELIVERY_NOT_TERMINAL';",
  ]),
  // Events and sequences.
  bug('sequence-reused', 'the sequence of a room does not move', [
    EVENTS,
    'SET last_sequence = last_sequence + ${count}::int WHERE',
    'SET last_sequence = last_sequence + 0 * ${count}::int WHERE',
  ]),
  bug('sequence-with-gap', 'two events that are written together skip a number', [
    EVENTS,
    'SET last_sequence = last_sequence + ${count}::int WHERE id = ${roomId}',
    'SET last_sequence = last_sequence + ${count > 1 ? count + 1 : count}::int WHERE id = ${roomId}',
  ]),
  bug('join-forgets-sequence', 'a join does not write the sequence that it used', [
    JOIN_WRITES,
    'last_sequence = ${sequence}::int',
    'last_sequence = greatest(last_sequence, 0 * ${sequence}::int)',
  ]),
  bug('left-without-event', 'a lost session writes no participant.left', [
    ENDED_SESSIONS,
    'if (ended.length === 0) return [];',
    "if (ended.length === 0 || reason === 'connection_lost') return [];",
  ]),
  // Sessions.
  bug('capacity-ignored', 'joins ignore the capacity', [
    DECIDE_JOINS,
    "if (liveSessions - replaced >= room.maxParticipants) return 'capacity';",
    '',
  ]),
  bug('capacity-off-by-one', 'a room takes one more participant than it has places', [
    DECIDE_JOINS,
    'liveSessions - replaced >= room.maxParticipants',
    'liveSessions - replaced > room.maxParticipants',
  ]),
  bug('join-overlooks-change', 'a join without locks does not see that its room has changed', [
    JOIN_LOCKS,
    'AND xmin = ${rowVersion}::text::xid FOR NO KEY UPDATE SKIP LOCKED',
    'AND ${rowVersion}::text IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED',
  ]),
  bug('join-overlooks-removal', 'a join without locks does not see that its participant has changed', [
    JOIN_LOCKS,
    'ON seen.id = p.id AND seen.row_version::xid = p.xmin',
    'ON seen.id = p.id AND seen.row_version IS NOT NULL',
  ]),
  bug('join-after-end', 'joins ignore that the room ends', [
    DECIDE_JOINS,
    "if (!isOpen(room.status)) return 'room_ended';",
    '',
  ]),
  bug(
    'join-after-removal',
    'joins ignore that the participant was removed and its token revoked',
    [DECIDE_JOINS, "if (participant.removed) return 'removed';", ''],
    [DECIDE_JOINS, "if (participant.tokenRevoked) return 'token_revoked';", ''],
  ),
  bug('superseded-too-late', 'a join does not end the earlier session of the participant', [
    JOIN_WRITES,
    'WHERE id = ANY(${superseded}::text[])',
    'WHERE false AND id = ANY(${superseded}::text[])',
  ]),
  bug('lost-sessions-stay', 'no sweep ends the sessions of a dead gateway', [
    LOST,
    'WHERE dead.heartbeat_at IS NOT NULL OR held.started_at <= ${over}',
    'WHERE (dead.heartbeat_at IS NOT NULL OR held.started_at <= ${over}) AND false',
  ]),
  bug('resumption-without-fence', 'a resumption keeps the number of the connection', [
    RESUME,
    'SET connection = s.connection + 1,',
    'SET connection = s.connection,',
  ]),
  bug(
    'lost-although-resumed',
    'a session that was found to be lost, or leaves, ends although it was resumed meanwhile',
    [
      ENDED_SESSIONS,
      'AND (s.id, s.connection) IN (${pairs})',
      'AND s.id = ANY(${held.map(({ sessionId }) => sessionId)}::text[])',
    ],
    [ENDED_SESSIONS, 'sessions: Prisma.sql`(id, connection) IN (${pairs})`', 'sessions: Prisma.sql`true`'],
  ),
  // Moves.
  bug('moved-and-stays', 'a move does not end the session in the room that the participant leaves', [
    MOVES,
    'const ended = await endParticipantPresence(tx, participantId, reason, now);',
    'const ended: Awaited<ReturnType<typeof endParticipantPresence>> = [];',
  ]),
  bug('moved-twice', 'a repeated attempt does not see that the participant has moved', [
    MOVES,
    'if (person?.moved === true) return null;',
    '',
  ]),
  // Recordings.
  bug('recordings-outlive-rooms', 'the end of a room does not stop its recordings', [
    END_STEPS,
    'return stopRecordings(tx, claim, claim.roomId, null, deps.clock.now());',
    'return { operations: [], deliveries: [] };',
  ]),
  bug('recordings-run-on', 'no sweep stops a recording after its longest duration', [
    RECORDING_ENDS,
    "WHERE recordings.status = 'recording'\n      AND",
    "WHERE recordings.status = 'processing'\n      AND",
  ]),
  bug('recorded-unseen', 'the room does not say that its recording has stopped', [
    RECORDING_ENDS,
    '{ ...locked, ...(await followRecordings(tx, roomId)) }',
    'locked',
  ]),
  bug('recorded-twice', 'later joins start recordings, too', [
    JOINS,
    "room.status === 'created' && room.record !== null",
    'room.record !== null',
  ]),
  // Forwards.
  bug('forwards-without-receivers', 'a forward stays open although nobody receives it', [
    MEDIA_FORWARDS,
    'f.wanted_until < now())',
    'f.wanted_until < now() AND false)',
  ]),
  bug('rooms-end-under-forwards', 'the end of a room does not wait for the forwards that gateways are opening', [
    'apps/cleanup-worker/src/media/media-clean-up.ts',
    'nodeIds.length > 1',
    'nodeIds.length < 1',
  ]),
  bug(
    'rooms-left-on-further-servers',
    'the end of a room destroys it on its own media server only, and no pass finds ended rooms',
    [
      PLACEMENT,
      'SELECT unnest(further_node_ids) FROM rooms WHERE',
      'SELECT unnest(further_node_ids) FROM rooms WHERE false AND',
    ],
    [
      PLACEMENT,
      'SELECT from_node_id FROM media_forwards WHERE',
      'SELECT from_node_id FROM media_forwards WHERE false AND',
    ],
    [PLACEMENT, 'SELECT to_node_id FROM media_forwards WHERE', 'SELECT to_node_id FROM media_forwards WHERE false AND'],
    ['apps/cleanup-worker/src/reconcile/media-orphans.ts', "return 'ended';", 'return null;'],
  ),
  // Idempotency.
  bug('key-without-lock', 'two requests with one idempotency key run at once', [
    IDEMPOTENCY,
    'return row?.locked === true;',
    'return row !== undefined;',
  ]),
  bug('key-not-recorded', 'the record of an idempotency key is not found', [
    IDEMPOTENCY,
    'AND expires_at > ${now.toISOString()}',
    'AND expires_at < ${now.toISOString()}',
  ]),
];

/**
 * @param {string} file
 * @param {string} text of the file
 * @param {readonly { file: string, find: string, replace: string }[]} patches of other files change nothing
 * @throws Error if the file does not have a text to replace exactly once.
 */
export function withPatches(file, text, patches) {
  for (const { find, replace } of patches.filter((patch) => patch.file === file)) {
    if (text.split(find).length !== 2) throw new Error(`"${find}" is not once in ${file}`);
    text = text.replace(find, () => replace);
  }
  return text;
}
