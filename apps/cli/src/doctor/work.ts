import { parseAllowedNetworks, risksOf, type AllowedNetwork, type NetworkRisk } from '@callplane/core';
import type { Backlog, FailingEndpoint, MediaNodeRow, RunningApp, TurnServerRow } from '@callplane/db';
import { quoted } from '../terminal.js';
import { failure, ok, seconds, warning, type Finding } from './finding.js';

/** Due rows wait for wake-ups, scans and slots for less. An older row waits for workers. */
const BACKLOG_AGE_MS_MAX = 60_000;
/** A worker scans PostgreSQL at least every 10 s. One that has run no statement for longer does not work. */
const SILENT_MS_MAX = 20_000;

const APP_OF: Partial<Record<Backlog['queue'], string>> = {
  'webhook-delivery': 'webhook-worker',
  'recording-process': 'recorder',
  'recording-delete': 'recorder',
};

/**
 * @param running the processes that are connected to PostgreSQL. Their latest statements prove that they work, whatever
 *   state Redis is in.
 */
export function checkQueue(backlog: Backlog, running: readonly RunningApp[]): Finding {
  const app = APP_OF[backlog.queue] ?? 'cleanup-worker';
  const check = `queue ${backlog.queue}`;
  const detail =
    backlog.due === 0 ? 'nothing is due' : `${backlog.due} due, the oldest for ${seconds(backlog.oldestDueMs ?? 0)}`;
  const processes = running.filter((process) => process.app === app);
  const [latest] = processes.map(({ silentMs }) => silentMs ?? 0).sort((a, b) => a - b);
  const working = processes.filter(({ silentMs }) => (silentMs ?? 0) <= SILENT_MS_MAX).length;
  // A deployment without recordings needs no recorder.
  if (latest === undefined && app === 'recorder' && backlog.due === 0) return ok(check, detail);
  if (latest === undefined) {
    return failure(check, `${detail}; no ${app} is connected`, `Start a ${app} and check its log.`);
  }
  if (working === 0) {
    const advice = `Check the log of the ${app} and restart it.`;
    return failure(check, `${detail}; no ${app} has read PostgreSQL for ${seconds(latest)}`, advice);
  }
  if ((backlog.oldestWorkingDueMs ?? 0) > BACKLOG_AGE_MS_MAX) {
    return warning(check, detail, `Start another ${app} (${working} run).`);
  }
  if ((backlog.oldestDueMs ?? 0) > BACKLOG_AGE_MS_MAX) {
    return ok(check, `${detail}; only deliveries to endpoints whose attempts fail wait for long`);
  }
  const workers = working === 1 ? '1 worker' : `${working} workers`;
  return ok(check, `${detail}; ${workers}, which read PostgreSQL ${seconds(latest)} ago`);
}

/**
 * @param count how many endpoints fail at present.
 * @param longest some of them.
 */
export function checkEndpoints(count: number, longest: readonly FailingEndpoint[]): Finding[] {
  const check = 'webhook endpoints';
  if (count === 0) return [ok(check, 'none has failed for 15 minutes')];
  const named = longest.map(({ id, url, failingSince }) =>
    warning(
      `webhook endpoint ${id}`,
      `${quoted(url)} fails since ${failingSince.toISOString()}`,
      `Tell its owner. "rtc deliveries list --endpoint ${id}" shows its answers.`,
    ),
  );
  if (count === longest.length) return named;
  return [...named, warning(check, `${count - longest.length} more fail`, '"rtc webhooks list" shows them.')];
}

/** @param nodes in the state that the cleanup workers saw last. */
export function checkMedia(nodes: readonly MediaNodeRow[], isOutdated: (version: string) => boolean): Finding[] {
  if (nodes.length === 0) {
    const advice =
      'Run "rtc media agent" beside each Janus, or set MEDIA_NODES on gateways and cleanup workers; without media ' +
      'servers calls have no audio and video.';
    return [warning('media', 'no media server is known', advice)];
  }
  const isAnswering = (id: string): boolean =>
    nodes.some((node) => node.id === id && node.unreached !== null && node.state === 'up' && node.agent === 'running');
  return nodes.map((node) => {
    const { id, state, version, draining, rooms, sessions, url, agent } = node;
    const check = `media ${id}`;
    const unreached = (node.unreached ?? []).filter(isAnswering);
    const carries = `carries ${rooms} rooms with ${sessions} sessions${draining ? ', draining' : ''}`;
    if (state !== null && version !== null && isOutdated(version)) {
      const advice = 'Update it to 1.4.1 or later: a client can stop it, with every call on it (docs/media.md).';
      return state === 'up'
        ? warning(check, `runs Janus ${version}, which is outdated; ${carries}`, advice)
        : failure(check, `is unreachable, or refused: its Janus ${version} is outdated; ${carries}`, advice);
    }
    switch (state) {
      case 'up':
        if (agent === 'silent') {
          return warning(
            check,
            `${carries}; its agent is silent`,
            'Start "rtc media agent" beside it again: without the agent, a new address stays unknown.',
          );
        }
        if (unreached.length > 0) {
          return warning(
            check,
            `${carries}; it does not reach ${unreached.join(', ')}`,
            'Open MEDIA_FORWARD_PORTS, UDP, between all media servers, and give their agents the same settings and the ' +
              'network of the host (docs/media.md).',
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

const NETWORK_ADVICE: Record<NetworkRisk, string> = {
  too_wide: 'Name only the networks of your receivers: webhooks can reach every service in this range.',
  metadata:
    'Take link-local addresses and metadata services out: holders of keys that may register webhooks could read credentials there.',
};

/**
 * Checks the networks that webhooks may use although they are not public.
 * @param entries WEBHOOK_ALLOWED_CIDRS as this command has it.
 * @param projects the number of projects, each of which is a customer.
 */
export function checkWebhookNetworks(entries: readonly string[], projects: number): Finding[] {
  const check = 'webhook networks';
  if (entries.length === 0) return [ok(check, 'WEBHOOK_ALLOWED_CIDRS is not set here')];
  let networks: AllowedNetwork[];
  try {
    networks = parseAllowedNetworks(entries);
  } catch (error) {
    return [
      failure(check, (error as Error).message, 'Correct WEBHOOK_ALLOWED_CIDRS: API and webhook workers do not start.'),
    ];
  }
  const risky = networks.flatMap((network) =>
    risksOf(network).map((risk) =>
      warning(`${check} ${network.name}`, `${network.cidr} is allowed`, NETWORK_ADVICE[risk]),
    ),
  );
  const names = networks.map(({ name }) => name).join(', ');
  const several =
    projects > 1
      ? [
          warning(
            check,
            `${projects} projects can send requests to ${names}`,
            'Use WEBHOOK_ALLOWED_CIDRS only where all projects are your own.',
          ),
        ]
      : [];
  return risky.length + several.length > 0 ? [...several, ...risky] : [ok(check, `${names} allowed`)];
}
