import { listMediaNodes, NODE_CAPACITY_MAX, registerMediaNode, removeMediaNode, setNodeDraining } from '@callplane/db';
import { Command } from 'commander';
import { notifyApps, withDatabase, type Cli } from '../cli.js';
import { CommandError, UsageError } from '../failure.js';
import { parseCount, parseDuration, parseRegion } from '../options.js';
import { addCommand, addList, print, type OutputOptions } from '../output.js';
import { runAgent } from './agent.js';
import { drainServer, serverOf } from './drain.js';

/** A drain without a duration waits this long. */
const WAIT_SECONDS_DEFAULT = 86_400;
const parseCapacity = parseCount('a number of participants', 1, NODE_CAPACITY_MAX);

interface RegisterOptions extends OutputOptions {
  capacity?: number;
  region?: string;
}

interface AgentOptions extends RegisterOptions {
  drainOnStop?: number;
  runningFile?: string;
}

interface DrainOptions extends OutputOptions {
  wait?: number | true;
  move?: true;
}

export function mediaCommands(cli: Cli): Command {
  const media = new Command('media').description(
    'Media servers: their load, registration, and taking them out of service',
  );
  addList(media, cli, {
    description: 'List the media servers',
    example: 'rtc media list',
    rows: ({ sql }) => listMediaNodes(sql),
    columns: {
      SERVER: (row) => row.id,
      STATE: (row) => row.state ?? 'unknown',
      VERSION: (row) => row.version,
      SERVICE: (row) => (row.draining ? 'draining' : 'in service'),
      ROOMS: (row) => row.rooms,
      SESSIONS: (row) => row.sessions,
      SEEN: (row) => row.checkedAt,
      CAPACITY: (row) => row.capacity,
      REGION: (row) => row.region,
      AGENT: (row) => row.agent,
      ADDRESS: (row) => row.url,
    },
  });
  addCommand(media, 'drain <node>', 'Place no new rooms on a media server', 'rtc media drain m1 --wait 1h --move')
    .option(
      '--wait [duration]',
      'wait until no participant is left on it, for example 30m (default: 1d)',
      parseDuration,
    )
    .option(
      '--move',
      'move its rooms to other media servers: now, or after the wait; their clients reconnect their media',
    )
    .action((nodeId: string, options: DrainOptions) => drain(cli, nodeId, options));
  const undrainDescription = 'Place rooms on a media server again';
  addCommand(media, 'undrain <node>', undrainDescription, 'rtc media undrain m1').action(
    (nodeId: string, options: OutputOptions) =>
      withDatabase(cli, async ({ prisma, sql }) => {
        const { rooms, sessions } = await serverOf(sql, nodeId);
        await setNodeDraining(prisma, nodeId, false);
        print(cli, options, { id: nodeId, draining: false, rooms, sessions }, `${nodeId} takes rooms again.`);
      }),
  );
  addRegistration(media, cli);
  return media;
}

function addRegistration(media: Command, cli: Cli): void {
  const capacity = ['--capacity <participants>', 'number of participants that it is meant for', parseCapacity] as const;
  const region = [
    '--region <region>',
    'sessions of this region come here first, for example eu-west',
    parseRegion,
  ] as const;
  const agentExample = 'rtc media agent m3 ws://10.0.0.7:8188 --capacity 800';
  addCommand(media, 'agent <node> <url>', 'Run beside a media server, and keep it registered', agentExample)
    .option(...capacity)
    .option(...region)
    .option(
      '--drain-on-stop <duration>',
      'drain it when the agent stops; its rooms move after this time',
      parseDuration,
    )
    .option('--running-file <path>', 'a file that is there until the agent ends: stop the media server after that')
    .action((nodeId: string, url: string, options: AgentOptions) => agent(cli, nodeId, url, options));
  const registerExample = 'rtc media register m3 ws://10.0.0.7:8188';
  addCommand(media, 'register <node> <url>', 'Register a media server that has no agent', registerExample)
    .option(...capacity)
    .option(...region)
    .action((nodeId: string, url: string, options: RegisterOptions) => register(cli, nodeId, url, options));
  addCommand(media, 'remove <node>', 'Remove a media server that has stopped', 'rtc media remove m3')
    .option('--force', 'also if it carries rooms; they move to other media servers')
    .action((nodeId: string, options: OutputOptions & { force?: true }) => remove(cli, nodeId, options));
}

function drain(cli: Cli, nodeId: string, options: DrainOptions): Promise<void> {
  const waitSeconds = options.wait === true ? WAIT_SECONDS_DEFAULT : (options.wait ?? null);
  return withDatabase(cli, async (database) => {
    const move = options.move === true;
    const { moved, rooms, sessions } = await drainServer(cli, database, nodeId, { waitSeconds, move });
    print(
      cli,
      options,
      { id: nodeId, draining: true, moved, rooms, sessions },
      `${nodeId} takes no new rooms.${move ? ` ${moved} rooms were moved.` : ''} ` +
        `It carries ${rooms} rooms with ${sessions} sessions.`,
    );
    if (waitSeconds !== null && sessions > 0) {
      throw new CommandError(`${nodeId} still carries ${rooms} rooms with ${sessions} sessions after the wait.`);
    }
  });
}

async function register(cli: Cli, nodeId: string, url: string, options: RegisterOptions): Promise<void> {
  const node = await nodeOf(nodeId, url, options);
  await withDatabase(cli, async ({ sql }, config) => {
    const outcome = await registerMediaNode(sql, { ...node, hasAgent: false });
    if (outcome === 'taken') {
      throw new CommandError(
        `An agent runs for ${nodeId} with another address: stop it first, or choose another name.`,
      );
    }
    if (outcome === 'full') {
      throw new CommandError('The registry is full: remove media servers with "rtc media remove".');
    }
    await notifyApps(config, 'mediaNodesChanged', '');
    print(cli, options, node, `${node.id} is registered with ${node.url}.`);
  });
}

async function agent(cli: Cli, nodeId: string, url: string, options: AgentOptions): Promise<void> {
  const node = await nodeOf(nodeId, url, options);
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  const say = (step: string, text: string): void => print(cli, options, { step, id: node.id }, text);
  const settings = {
    node,
    drainSeconds: options.drainOnStop ?? null,
    runningFile: options.runningFile ?? null,
  };
  await withDatabase(cli, (database, config) => runAgent({ cli, config, database, say }, settings, abort.signal));
}

function remove(cli: Cli, nodeId: string, options: OutputOptions & { force?: true }): Promise<void> {
  return withDatabase(cli, async ({ prisma, sql }, config) => {
    const { agent: state, rooms, sessions, ...node } = await serverOf(sql, nodeId);
    if (state === 'running')
      throw new CommandError(`The agent of ${nodeId} runs and registers it again: stop it first.`);
    if (node.url === null && node.state !== null) {
      throw new CommandError(`${nodeId} is in MEDIA_NODES of running cleanup workers: remove it there first.`);
    }
    if (rooms > 0 && options.force !== true) {
      throw new CommandError(
        `${nodeId} carries ${rooms} rooms with ${sessions} sessions: run "rtc media drain ${nodeId} --move" first, ` +
          'or give --force if the server is gone.',
      );
    }
    await removeMediaNode(prisma, nodeId);
    await notifyApps(config, 'mediaNodesChanged', '');
    print(cli, options, { id: nodeId, rooms, sessions }, `${nodeId} is removed.`);
  });
}

/** @throws UsageError */
async function nodeOf(nodeId: string, address: string, { capacity, region }: RegisterOptions) {
  const { isNodeName, parseNodeUrl } = await import('@callplane/media');
  if (!isNodeName(nodeId)) {
    throw new UsageError('The name of a media server has 1 to 32 letters a to z, digits and hyphens inside.');
  }
  try {
    return { id: nodeId, url: parseNodeUrl(nodeId, address), capacity: capacity ?? null, region: region ?? null };
  } catch (error) {
    throw new UsageError(`${(error as Error).message}.`);
  }
}
