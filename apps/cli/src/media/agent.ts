import { rm, writeFile } from 'node:fs/promises';
import { forwardPorts } from '@callplane/core';
import {
  isDatabaseUnavailable,
  listRegisteredNodes,
  registerMediaNode,
  setNodeDraining,
  silenceAgent,
  type Database,
  type NodeRegistration,
  type RegistrationOutcome,
} from '@callplane/db';
import { createMetrics, pause, startMetricsServer } from '@callplane/runtime';
import { notifyApps, type Cli } from '../cli.js';
import type { CliConfig } from '../config.js';
import { UsageError } from '../failure.js';
import { captureUntil } from './capture/capture-loop.js';
import { drainServer } from './drain.js';
import { answerProbes, reaches } from './probes.js';

/** How often the agent checks its media server and registers it. */
const HEARTBEAT_EVERY_MS = 5000;
/** How long the agent waits for the first connection to its media server before it says so. */
const FIRST_CONNECTION_MS = 3000;

export interface AgentSettings {
  node: Omit<NodeRegistration, 'hasAgent'>;
  /** How long to wait for the end of calls when the agent stops, before their rooms move; null: the agent just stops. */
  drainSeconds: number | null;
  /** A file that is there while the agent runs. The media server has to stop after that. Null: none. */
  runningFile: string | null;
}

type Step = RegistrationOutcome | 'unreachable' | 'database';

const LINES: Readonly<Record<Step, (node: AgentSettings['node']) => string>> = {
  registered: ({ id, url }) => `${id} is registered with ${url}.`,
  known: ({ id }) => `${id} is registered.`,
  taken: ({ id }) => `Another agent runs for ${id} with another address. Trying again.`,
  full: () => 'The registry is full: remove media servers with "rtc media remove". Trying again.',
  unreachable: ({ id }) => `${id} does not answer. Trying again.`,
  database: () => 'PostgreSQL is unreachable or read-only. Trying again.',
};

export interface AgentDeps {
  cli: Cli;
  config: CliConfig;
  database: Database;
  say: (step: string, text: string) => void;
}

/**
 * Runs beside a media server: registers it, and sends a heartbeat whenever the server has answered a ping. Ends when
 * `signal` aborts.
 */
export async function runAgent(deps: AgentDeps, settings: AgentSettings, signal: AbortSignal): Promise<void> {
  const { runningFile } = settings;
  if (runningFile === null) return serve(deps, settings, signal);
  await writeFile(runningFile, '');
  try {
    await serve(deps, settings, signal);
  } finally {
    await rm(runningFile, { force: true });
  }
}

async function serve(deps: AgentDeps, settings: AgentSettings, signal: AbortSignal): Promise<void> {
  const { cli, config, database, say } = deps;
  const { node } = settings;
  const { MEDIA_API_SECRET: apiSecret } = config;
  if (apiSecret === undefined) throw new UsageError('Set MEDIA_API_SECRET to the secret of the media servers.');
  const { JANUS_VERSION_MIN, MediaNode } = await import('@callplane/media');
  // The agent makes no rooms, but the recording of one needs its secret.
  const adminKey = config.MEDIA_ADMIN_KEY ?? '';
  const options = { id: node.id, url: node.url, apiSecret, adminKey, random: Math.random };
  // The apps decide whether they use an outdated server.
  const janus = new MediaNode({ ...options, allowOutdated: true });
  janus.on('outdated', (version) =>
    say('outdated', `${node.id} runs Janus ${version}, before ${JANUS_VERSION_MIN}. The apps refuse it by default.`),
  );
  let last: Step | null = null;
  let hasRegistered = false;
  const stopped = new AbortController();
  const probes = await startProbes(config);
  const nowMs = () => cli.clock.now().getTime();
  const metrics = createMetrics({ app: 'media-agent' });
  const { METRICS_HOST: host, METRICS_PORT: port } = config;
  if (port !== 0) metrics.addProcessMetrics();
  const server = port === 0 ? null : await startMetricsServer(metrics, { host, port });
  const capturing = captureUntil(stopped.signal, { nodeId: node.id, janus, database, config, nowMs, metrics, say });
  // It ends only with an error or a stop.
  const failed = capturing.then(() => new Promise<never>(() => undefined));
  try {
    await janus.untilUp(FIRST_CONNECTION_MS).catch(() => undefined);
    while (!signal.aborted) {
      const step = await beat(deps, settings, janus, { hasRegistered, probes });
      hasRegistered ||= isRegistered(step);
      const isNews = step !== last && !(step === 'known' && last === 'registered');
      if (isNews) say(step, LINES[step](node));
      last = step;
      await Promise.race([pause(HEARTBEAT_EVERY_MS, signal), failed]);
    }
    // Calls are recorded until they have moved.
    if (settings.drainSeconds !== null && hasRegistered) await drain(deps, node, settings.drainSeconds);
  } finally {
    stopped.abort();
    await capturing.catch(() => undefined);
    await server?.close();
    probes?.close();
    if (hasRegistered) await silenceAgent(database.sql, node.id).catch(() => undefined);
    await janus.close();
  }
}

interface Probes {
  /** The servers of these that do not answer on the ports of forwards. */
  unreached(others: readonly { id: string; url: string }[]): Promise<string[]>;
  close(): void;
}

/** @returns null if rooms use one media server each, or the secret of forwards is missing */
async function startProbes(config: CliConfig): Promise<Probes | null> {
  const { MEDIA_ADMIN_KEY: key, MEDIA_FORWARD_PORTS, MEDIA_NODES_PER_ROOM } = config;
  if (MEDIA_NODES_PER_ROOM === 1 || key === undefined) return null;
  const { probe } = forwardPorts(MEDIA_FORWARD_PORTS);
  const sockets = await answerProbes(probe, key);
  return {
    async unreached(others) {
      const found = others.map(async ({ id, url }) => ((await reaches(new URL(url).hostname, probe, key)) ? [] : [id]));
      return (await Promise.all(found)).flat();
    },
    close: () => sockets.forEach((socket) => socket.close()),
  };
}

/** One heartbeat. The first one of an agent that drains puts its server back into service. */
async function beat(
  { config, database }: AgentDeps,
  { node, drainSeconds }: AgentSettings,
  janus: { ping(): Promise<void> },
  { hasRegistered, probes }: { hasRegistered: boolean; probes: Probes | null },
): Promise<Step> {
  try {
    await janus.ping();
  } catch {
    return 'unreachable';
  }
  try {
    const isOther = ({ id }: { id: string }) => id !== node.id;
    const unreached =
      probes === null ? null : await probes.unreached((await listRegisteredNodes(database.sql)).filter(isOther));
    const outcome = await registerMediaNode(database.sql, { ...node, hasAgent: true, unreached });
    if (isRegistered(outcome) && drainSeconds !== null && !hasRegistered) {
      await setNodeDraining(database.prisma, node.id, false);
    }
    if (outcome === 'registered') await notifyApps(config, 'mediaNodesChanged', '');
    return outcome;
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    return 'database';
  }
}

function isRegistered(step: Step): boolean {
  return step === 'registered' || step === 'known';
}

/** Continues after an outage of PostgreSQL: the media server stops with the agent, and its calls would end. */
async function drain({ cli, database, say }: AgentDeps, node: AgentSettings['node'], waitSeconds: number) {
  const nodeId = node.id;
  say('draining', `${nodeId} takes no new rooms. Waiting for the end of its calls.`);
  const endMs = cli.clock.now().getTime() + waitSeconds * 1000;
  let hasFailed = false;
  for (;;) {
    const leftMs = Math.max(0, endMs - cli.clock.now().getTime());
    try {
      const settings = { waitSeconds: leftMs / 1000, move: true };
      const { moved, rooms, sessions } = await drainServer(cli, database, nodeId, settings);
      say('drained', `${moved} rooms were moved. ${nodeId} carries ${rooms} rooms with ${sessions} sessions.`);
      return;
    } catch (error) {
      if (!isDatabaseUnavailable(error) || leftMs === 0) throw error;
      if (!hasFailed) say('database', LINES.database(node));
      hasFailed = true;
    }
    await pause(HEARTBEAT_EVERY_MS, new AbortController().signal);
  }
}
