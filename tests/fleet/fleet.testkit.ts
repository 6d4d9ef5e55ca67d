import {
  eventually,
  startTestJanus,
  startTestPostgres,
  type TestApp,
  type TestJanus,
  type TestPostgres,
} from '@callplane/testing';
import { startReceiver, startWebhookStack, type Receiver, type WebhookStack } from '../faults/webhooks.testkit.js';
import { Member } from './members.testkit.js';
import { startNginx, type TestNginx } from './nginx.testkit.js';

/** Shorter than in production, so that tests wait less for leases of killed workers, and longer than a freeze. */
export const LEASE_MS = 10_000;

export interface Fleet {
  stack: WebhookStack;
  nginx: TestNginx;
  janus: TestJanus;
  postgres: TestPostgres;
  apis: Member[];
  gateways: Member[];
  cleaners: Member[];
  senders: Member[];
  members: Member[];
  receiver: Receiver;
  /** Registers one more receiver for all events. */
  addReceiver(): Promise<Receiver>;
}

export interface FleetSize {
  apis: number;
  gateways: number;
  cleaners: number;
  senders: number;
}

/**
 * Starts a complete Callplane behind its load balancer, in which a test may disturb every process.
 * @param more additional settings of all apps
 */
export async function startFleet(size: FleetSize, more: Record<string, string> = {}): Promise<Fleet> {
  const [postgres, janus, receiver] = await Promise.all([startTestPostgres(), startTestJanus(), startReceiver()]);
  const stack = await startWebhookStack((await postgres.createDatabase()).url);
  const media = {
    MEDIA_NODES: `one=${janus.url}`,
    MEDIA_API_SECRET: janus.apiSecret,
    MEDIA_ADMIN_KEY: janus.adminKey,
  };
  const pace = { SWEEP_INTERVAL_MS: '1000', LEASE_MS: String(LEASE_MS) };
  const start = (count: number, kind: string, spawn: (env: Record<string, string>) => Promise<TestApp>) =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        Member.start(kind, index + 1, (port) => spawn({ PORT: String(port), DATABASE_POOL_MAX: '5', ...more })),
      ),
    );
  const readyWithinMs = 60_000;
  const [apis, gateways, cleaners, senders] = await Promise.all([
    // One second longer than nginx keeps idle connections: see infra/nginx/upstreams.conf.
    start(size.apis, 'api', (env) =>
      stack.spawnApi({ TRUST_PROXY: '127.0.0.1', DRAIN_IDLE_MS: '5000', ...env }, readyWithinMs),
    ),
    start(size.gateways, 'signaling', (env) => stack.spawnSignaling({ ...media, ...env }, readyWithinMs)),
    start(size.cleaners, 'cleanup-worker', (env) => stack.spawnWorker({ ...media, ...pace, ...env }, readyWithinMs)),
    start(size.senders, 'webhook-worker', (env) =>
      stack.spawnWebhookWorker({ ...pace, DELIVERY_DEADLINE_MS: '5000', ...env }, readyWithinMs),
    ),
  ]);
  const portsOf = (members: readonly Member[]) => members.map(({ port }) => port);
  const nginx = await startNginx({ api: portsOf(apis), signaling: portsOf(gateways) });
  // Registers directly at an instance that no test disturbs yet, not through the load balancer.
  const register = async (to: Receiver): Promise<Receiver> => {
    await stack.register(apis[0]!.current, to);
    return to;
  };
  await register(receiver);
  return {
    stack,
    nginx,
    janus,
    postgres,
    apis,
    gateways,
    cleaners,
    senders,
    receiver,
    members: [...apis, ...gateways, ...cleaners, ...senders],
    addReceiver: async () => register(await startReceiver()),
  };
}

/** One line of the load balancer's log. */
export interface Proxied {
  atMs: number;
  durationMs: number;
  method: string;
  path: string;
  status: number;
  /** Ports of the instances that nginx tried, in sequence. */
  asked: number[];
}

export function proxiedBy(nginx: TestNginx): Proxied[] {
  return nginx
    .output()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => {
      const entry = JSON.parse(line) as Record<string, string>;
      return {
        atMs: Date.parse(entry['time'] ?? ''),
        durationMs: Number(entry['durationMs']) * 1000,
        method: entry['method'] ?? '',
        path: entry['path'] ?? '',
        status: Number(entry['status']),
        asked: [...(entry['upstream'] ?? '').matchAll(/:(\d+)/g)].map(([, port]) => Number(port)),
      };
    });
}

/** Resolves once the load balancer has a response from a replaced instance, so that nginx routes to it again. */
export async function servesAgain(nginx: TestNginx, member: Member): Promise<void> {
  const since = Math.floor(Date.now() / 1000) * 1000;
  await eventually(
    async () => {
      await fetch(`${nginx.url}${member.kind === 'api' ? '/v1/' : '/v1/signaling'}`);
      return proxiedBy(nginx).some(
        ({ atMs, asked, status }) => atMs >= since && asked.at(-1) === member.port && status < 500,
      );
    },
    { intervalMs: 250 },
  );
}
