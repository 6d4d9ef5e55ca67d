import {
  isDatabaseUnavailable,
  registerMediaNode,
  setNodeDraining,
  type Database,
  type NodeRegistration,
  type RegistrationOutcome,
} from '@callplane/db';
import { pause } from '@callplane/runtime';
import { notifyApps, type Cli } from '../cli.js';
import type { CliConfig } from '../config.js';
import { UsageError } from '../failure.js';
import { drainServer } from './drain.js';

/** How often the agent checks its media server and registers it. */
const HEARTBEAT_EVERY_MS = 5000;
/** How long the agent waits for the first connection to its media server before it says so. */
const FIRST_CONNECTION_MS = 3000;

export interface AgentSettings {
  node: Omit<NodeRegistration, 'hasAgent'>;
  /** How long to wait for the end of calls when the agent stops, before their rooms move; null: the agent just stops. */
  drainSeconds: number | null;
}

type Step = RegistrationOutcome | 'unreachable' | 'database';

/** What the agent says when its state changes. */
const LINES: Readonly<Record<Step, (node: AgentSettings['node']) => string>> = {
  registered: ({ id, url }) => `${id} is registered with ${url}.`,
  known: ({ id }) => `${id} is registered.`,
  taken: ({ id }) => `Another agent runs for ${id} with another address. Trying again.`,
  full: () => 'The registry is full: remove media servers with "rtc media remove". Trying again.',
  unreachable: ({ id }) => `${id} does not answer. Trying again.`,
  database: () => 'PostgreSQL is unreachable or read-only. Trying again.',
};

/**
 * Runs beside a media server: registers it, and sends a heartbeat whenever the server has answered a ping. Ends when
 * `signal` aborts.
 * @param say reports a change of the agent's state.
 */
export async function runAgent(
  cli: Cli,
  { config, database }: { config: CliConfig; database: Database },
  { node, drainSeconds }: AgentSettings,
  { signal, say }: { signal: AbortSignal; say: (step: string, text: string) => void },
): Promise<void> {
  const { MEDIA_API_SECRET: apiSecret } = config;
  if (apiSecret === undefined) throw new UsageError('Set MEDIA_API_SECRET to the secret of the media servers.');
  const { JanusNode } = await import('@callplane/media');
  // The agent makes no rooms, so it needs no admin key.
  const janus = new JanusNode({ id: node.id, url: node.url, apiSecret, adminKey: '', random: Math.random });
  let last: Step | null = null;
  let isInService = false;
  const beat = async (): Promise<Step> => {
    try {
      await janus.untilUp(last === null ? FIRST_CONNECTION_MS : 0);
      await janus.ping();
    } catch {
      return 'unreachable';
    }
    try {
      const outcome = await registerMediaNode(database.sql, { ...node, hasAgent: true });
      if (outcome !== 'registered' && outcome !== 'known') return outcome;
      // An earlier stop of this agent has drained the server.
      if (drainSeconds !== null && !isInService) await setNodeDraining(database.sql, node.id, false);
      isInService = true;
      if (outcome === 'registered') await notifyApps(config, 'mediaNodesChanged', '');
      return outcome;
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      return 'database';
    }
  };
  try {
    while (!signal.aborted) {
      const step = await beat();
      const isNews = step !== last && !(step === 'known' && last === 'registered');
      if (isNews) say(step, LINES[step](node));
      last = step;
      await pause(HEARTBEAT_EVERY_MS, signal);
    }
  } finally {
    await janus.close();
  }
  if (drainSeconds === null || !isInService) return;
  say('draining', `${node.id} takes no new rooms. Waiting for the end of its calls.`);
  const { moved, rooms, sessions } = await drainServer(cli, database, node.id, {
    waitSeconds: drainSeconds,
    move: true,
  });
  say('drained', `${moved} rooms were moved. ${node.id} carries ${rooms} rooms with ${sessions} sessions.`);
}
