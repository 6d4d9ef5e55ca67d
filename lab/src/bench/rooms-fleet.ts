import { readFileSync } from 'node:fs';
import { freePort } from '@callplane/local-servers';
import type { openStage } from './stage.js';

const GATEWAYS = Number(process.env.BENCH_GATEWAYS ?? 3);
const PERMISSIONS = ['room:join', 'messages:send', 'metadata:update'];

/** The API, the cleanup worker and three gateways without media servers. */
export async function openFleet(stage: Awaited<ReturnType<typeof openStage>>) {
  await stage.rtc('db', 'migrate');
  const { id: project } = await stage.rtc('projects', 'create', '--name', 'bench');
  const { id: environment } = await stage.rtc('environments', 'create', '--project', project, '--name', 'bench');
  const { key } = await stage.rtc('keys', 'create', '--env', environment, '--type', 'secret');
  const settings = {
    // Otherwise the benchmark would measure the rate limits.
    RATE_LIMIT_SIGNALING_PER_SECOND: '0',
    RATE_LIMIT_MESSAGES_PER_SECOND: '0',
    RATE_LIMIT_METADATA_PER_SECOND: '0',
    HOST: '127.0.0.1',
    // For example a `--require` that starts a profiler.
    NODE_OPTIONS: process.env.BENCH_NODE_OPTIONS ?? '',
    HEALTH_HOST: '127.0.0.1',
  };
  const start = async (app: string, portName: string) => {
    const port = String(await freePort());
    const origin = `http://127.0.0.1:${port}`;
    const child = await stage.run(`apps/${app}/dist/main.js`, { ...settings, [portName]: port }, `${origin}/readyz`);
    return { pid: Number(child.pid), origin, child };
  };
  const startGateway = async () => {
    const { pid, origin, child } = await start('signaling', 'PORT');
    return { pid, url: `${origin.replace('http', 'ws')}/v1/signaling`, child };
  };
  const api = await start('api', 'PORT');
  const cleanup = await start('cleanup-worker', 'HEALTH_PORT');
  const gateways = await Promise.all(Array.from({ length: GATEWAYS }, startGateway));
  const call = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await fetch(`${api.origin}${path}`, { method, headers, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return JSON.parse(text);
  };
  return {
    gateways,
    /** Starts a gateway in the place of one that was killed. */
    replace: async (index: number) => void (gateways[index] = await startGateway()),
    newRoom: async (maxParticipants: number) =>
      String((await call('POST', '/v1/rooms', { name: 'bench', maxParticipants })).id),
    token: async (room: string, name: string) =>
      String(
        (await call('POST', `/v1/rooms/${room}/tokens`, { participantName: name, permissions: PERMISSIONS })).token,
      ),
    /** CPU time of all gateways so far, in milliseconds. */
    gatewaysCpuMs: () => gateways.reduce((sum, { pid }) => sum + cpuMs(pid), 0),
    /** Resident memory of all gateways, in KiB. */
    gatewaysRssKiB: () => gateways.reduce((sum, { pid }) => sum + memoryOf(pid, 'VmRSS'), 0),
    /** The largest resident memory that a process of the fleet ever had, in KiB. */
    highestKiB: () =>
      Math.max(
        ...[api, cleanup, ...gateways.filter(({ child }) => child.exitCode === null && child.signalCode === null)].map(
          ({ pid }) => memoryOf(pid, 'VmHWM'),
        ),
      ),
  };
}

export type Fleet = Awaited<ReturnType<typeof openFleet>>;

/**
 * CPU time in user and kernel mode; its steps are 10 ms.
 * @param withEnded adds the time of children that have ended.
 */
export function cpuMs(pid: number, { withEnded = false } = {}): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name of the program, in parentheses, may contain spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const own = Number(fields[11]) + Number(fields[12]);
  return (own + (withEnded ? Number(fields[13]) + Number(fields[14]) : 0)) * 10;
}

function memoryOf(pid: number, what: 'VmRSS' | 'VmHWM'): number {
  return Number(new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
