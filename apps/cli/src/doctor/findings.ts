import type { DatabaseFacts, MediaNodeRow, TurnServerRow } from '@callplane/db';

/** The outcome of one check. Every finding that is not `ok` has advice. */
export interface Finding {
  check: string;
  status: 'ok' | 'warning' | 'failure';
  detail: string;
  advice?: string;
}

const POSTGRES_VERSION_MIN = 140_000;
/** Beyond this difference, timestamps from apps (their clock) contradict leases (PostgreSQL's clock). */
const CLOCK_DIFFERENCE_MS_MAX = 2000;
const CONNECTIONS_SHARE_MAX = 0.8;

export const ok = (check: string, detail: string): Finding => ({ check, status: 'ok', detail });
export const warning = (check: string, detail: string, advice: string): Finding => ({
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

/** @param clockDifferenceMs this machine's clock minus PostgreSQL's clock. */
export function checkDatabase(facts: DatabaseFacts, clockDifferenceMs: number): Finding[] {
  const share = facts.connections / facts.connectionsMax;
  const used = `${facts.connections} of ${facts.connectionsMax} in use`;
  return [
    facts.versionNumber >= POSTGRES_VERSION_MIN
      ? ok('postgres', `version ${facts.version}`)
      : failure('postgres', `version ${facts.version}`, 'Upgrade PostgreSQL to 14 or later.'),
    facts.encoding === 'UTF8'
      ? ok('text', 'the encoding is UTF8')
      : failure(
          'text',
          `the encoding is ${facts.encoding}`,
          'Dump the database with --encoding=UTF8, and restore it into one with that encoding: names would be refused.',
        ),
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

export function checkSchema(pending: readonly string[]): Finding {
  return pending.length === 0
    ? ok('schema', 'up to date')
    : failure('schema', `pending migrations: ${pending.join(', ')}`, 'Run "rtc db migrate".');
}

/** @param configured key ids in ENCRYPTION_KEYS; null if the setting is absent here. */
export function checkMasterKeys(inUse: readonly string[], configured: readonly string[] | null): Finding {
  if (configured === null) {
    return warning('encryption', 'not checked', 'Set ENCRYPTION_KEYS as in the API to check this.');
  }
  const missing = inUse.filter((id) => !configured.includes(id));
  return missing.length === 0
    ? ok(
        'encryption',
        inUse.length === 0 ? 'no secret is stored yet' : `every secret can be opened (${inUse.join(', ')})`,
      )
    : failure(
        'encryption',
        `secrets are sealed with ${missing.join(', ')}, but ENCRYPTION_KEYS does not contain these keys`,
        'Put these keys back, behind the first one, on the API and the webhook workers.',
      );
}

/** @param nodes in the state that the cleanup workers saw last. */
export function checkMedia(nodes: readonly MediaNodeRow[]): Finding[] {
  if (nodes.length === 0) {
    const advice =
      'Run "rtc media agent" beside each Janus, or set MEDIA_NODES on gateways and cleanup workers; without media ' +
      'servers calls have no audio and video.';
    return [warning('media', 'no media server is known', advice)];
  }
  return nodes.map((node) => {
    const { id, state, draining, rooms, sessions, url, agent } = node;
    const check = `media ${id}`;
    const carries = `carries ${rooms} rooms with ${sessions} sessions${draining ? ', draining' : ''}`;
    switch (state) {
      case 'up':
        if (agent === 'silent') {
          return warning(
            check,
            `${carries}; its agent is silent`,
            'Start "rtc media agent" beside it again: without the agent, a new address stays unknown.',
          );
        }
        return ok(check, carries);
      case 'down': {
        const place = url === null ? 'in MEDIA_NODES' : 'in "rtc media list"';
        const advice = `Check its log and its address ${place}. Its rooms move automatically.`;
        return failure(check, `is unreachable, ${carries}`, advice);
      }
      case null:
        return warning(
          check,
          `was not checked recently, ${carries}`,
          url === null
            ? 'Start a cleanup-worker with this server in MEDIA_NODES, or run "rtc media remove" if it is gone.'
            : 'Start a cleanup-worker with MEDIA_API_SECRET and MEDIA_ADMIN_KEY.',
        );
    }
  });
}

/** @param servers in the state that the cleanup workers saw last on their administration interfaces. */
export function checkRelays(servers: readonly TurnServerRow[]): Finding[] {
  if (servers.length === 0) {
    const advice =
      'Set TURN_ADMIN_URLS and TURN_ADMIN_PASSWORD on the cleanup workers; without them a removed participant keeps its relay as long as its client refreshes it.';
    return [warning('relays', 'relays of ended sessions are not closed', advice)];
  }
  return servers.map(({ address, state }) => {
    const check = `relays ${address}`;
    switch (state) {
      case 'up':
        return ok(check, 'relays of ended sessions are closed');
      case 'down':
        return failure(
          check,
          'the port refuses connections',
          'Start this coturn with cli-ip, cli-port and cli-password, or take it out of TURN_ADMIN_URLS.',
        );
      case 'unreachable':
        return failure(
          check,
          'does not accept commands to close relays',
          'Check address, firewall and TURN_ADMIN_PASSWORD. Until then removals are retried.',
        );
    }
  });
}

/** @param living number of signaling instances with a current heartbeat. */
export function checkSignaling(living: number): Finding {
  return living > 0
    ? ok('signaling', `${living} instances run`)
    : warning('signaling', 'no instance runs', 'Start a signaling gateway. Without one, no participant can join.');
}
