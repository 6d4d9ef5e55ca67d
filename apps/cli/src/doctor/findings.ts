import type { Backlog, DatabaseFacts, MediaNodeRow } from '@callplane/db';
import type { QueueDepth, RedisFacts } from '@callplane/queue';

/** The outcome of one check. What is not `ok` says what to do. */
export interface Finding {
  check: string;
  status: 'ok' | 'warning' | 'failure';
  detail: string;
  advice?: string;
}

const POSTGRES_VERSION_MIN = 140_000;
/** Beyond this, what apps write (their clock) and leases (PostgreSQL's) tell different stories. */
const CLOCK_DIFFERENCE_MS_MAX = 2000;
const CONNECTIONS_SHARE_MAX = 0.8;
/** A sweep finds a lost wake-up within 15 s: what is older waits for workers. */
const BACKLOG_AGE_MS_MAX = 60_000;

const ok = (check: string, detail: string): Finding => ({ check, status: 'ok', detail });
const warning = (check: string, detail: string, advice: string): Finding => ({
  check,
  status: 'warning',
  detail,
  advice,
});
export const failure = (check: string, detail: string, advice: string): Finding => ({
  check,
  status: 'failure',
  detail,
  advice,
});

/** @param clockDifferenceMs this machine's clock less PostgreSQL's. */
export function judgeDatabase(facts: DatabaseFacts, clockDifferenceMs: number): Finding[] {
  const share = facts.connections / facts.connectionsMax;
  const used = `${facts.connections} of ${facts.connectionsMax} in use`;
  return [
    facts.versionNumber >= POSTGRES_VERSION_MIN
      ? ok('postgres', `version ${facts.version}`)
      : failure('postgres', `version ${facts.version}`, 'Upgrade PostgreSQL to 14 or later.'),
    facts.durable
      ? ok('durability', 'commits wait for the disk')
      : failure(
          'durability',
          'fsync or synchronous_commit is off',
          'Turn both on: a crash of PostgreSQL would lose accepted work.',
        ),
    share <= CONNECTIONS_SHARE_MAX
      ? ok('connections', used)
      : warning('connections', used, 'Raise max_connections or lower DATABASE_POOL_MAX of the apps.'),
    Math.abs(clockDifferenceMs) <= CLOCK_DIFFERENCE_MS_MAX
      ? ok('clock', `differs from PostgreSQL's by ${Math.round(clockDifferenceMs)} ms`)
      : warning(
          'clock',
          `differs from PostgreSQL's by ${(clockDifferenceMs / 1000).toFixed(1)} s`,
          'Run NTP on every machine: receivers refuse webhooks that are 300 s off, and tokens expire by these clocks.',
        ),
    facts.activeSigningKeys === 1
      ? ok('signing key', 'one is active')
      : warning(
          'signing key',
          'none is active',
          'Start the API, which makes the first one, or run "rtc signing-keys rotate".',
        ),
  ];
}

export function judgeSchema(pending: readonly string[]): Finding {
  return pending.length === 0
    ? ok('schema', 'up to date')
    : failure('schema', `lacks ${pending.join(', ')}`, 'Run "rtc db migrate".');
}

/** @param configured ids of ENCRYPTION_KEYS; null when it is not set here. */
export function judgeMasterKeys(inUse: readonly string[], configured: readonly string[] | null): Finding {
  if (configured === null) {
    return warning('encryption', 'not checked', 'Set ENCRYPTION_KEYS as the API has it, to have this checked.');
  }
  const missing = inUse.filter((id) => !configured.includes(id));
  return missing.length === 0
    ? ok('encryption', inUse.length === 0 ? 'nothing is sealed yet' : `every secret opens (${inUse.join(', ')})`)
    : failure(
        'encryption',
        `secrets are sealed with ${missing.join(', ')}, which ENCRYPTION_KEYS lacks`,
        'Put these keys back, behind the first one, on the API and the webhook workers.',
      );
}

export function judgeRedis(facts: RedisFacts): Finding[] {
  const [major = 0, minor = 0] = facts.version.split('.').map(Number);
  return [
    major > 6 || (major === 6 && minor >= 2)
      ? ok('redis', `version ${facts.version}`)
      : failure('redis', `version ${facts.version}`, 'Upgrade Redis to 6.2 or later.'),
    facts.maxmemoryPolicy === null || facts.maxmemoryPolicy === 'noeviction'
      ? ok('redis memory', facts.maxmemoryPolicy ?? 'policy not told')
      : failure(
          'redis memory',
          `maxmemory-policy is ${facts.maxmemoryPolicy}`,
          'Set maxmemory-policy noeviction: others drop jobs when memory is short.',
        ),
    facts.appendOnly
      ? ok('redis persistence', 'append-only file is on')
      : warning(
          'redis persistence',
          'append-only file is off',
          'Turn appendonly on: after a restart every wake-up would wait for a sweep.',
        ),
  ];
}

/** @param depths what Redis says; null when it cannot be asked. */
export function judgeQueue(backlog: Backlog, depths: readonly QueueDepth[] | null): Finding {
  const app = backlog.queue === 'webhook-delivery' ? 'webhook-worker' : 'cleanup-worker';
  const check = `queue ${backlog.queue}`;
  const workers = depths?.find(({ queue }) => queue === backlog.queue)?.workers;
  const age = backlog.oldestDueMs ?? 0;
  const waits = `${backlog.due} due, the oldest for ${(age / 1000).toFixed(1)} s`;
  const detail = backlog.due === 0 ? 'nothing waits' : waits;
  if (workers === 0)
    return failure(check, `${detail}; no worker takes from it`, `Start a ${app}, and look at its log.`);
  if (age > BACKLOG_AGE_MS_MAX) {
    return warning(check, detail, `Start another ${app}${workers === undefined ? '' : ` (${workers} run)`}.`);
  }
  return ok(check, workers === undefined ? detail : `${detail}; ${workers} ${workers === 1 ? 'worker' : 'workers'}`);
}

/** @param nodes as the cleanup workers saw them last. */
export function judgeMedia(nodes: readonly MediaNodeRow[]): Finding[] {
  if (nodes.length === 0) {
    const advice = 'Set MEDIA_NODES on gateways and cleanup workers; without it calls have neither sound nor pictures.';
    return [warning('media', 'no media server is known', advice)];
  }
  return nodes.map(({ id, state, draining, rooms, sessions }) => {
    const check = `media ${id}`;
    const carries = `carries ${rooms} rooms with ${sessions} sessions${draining ? ', draining' : ''}`;
    switch (state) {
      case 'up':
        return ok(check, carries);
      case 'down':
        return failure(
          check,
          `is away, ${carries}`,
          'Look at its log and its address in MEDIA_NODES; its rooms move by themselves.',
        );
      case null:
        return warning(
          check,
          `nobody has looked lately, ${carries}`,
          'Start a cleanup-worker with this server in MEDIA_NODES.',
        );
    }
  });
}

/** @param living signaling instances whose heart beats. */
export function judgeSignaling(living: number): Finding {
  return living > 0
    ? ok('signaling', `${living} instances run`)
    : warning('signaling', 'no instance runs', 'Start a signaling gateway; until then nobody can join.');
}
