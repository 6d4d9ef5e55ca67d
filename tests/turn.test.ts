import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '@callplane/core';
import { freePort, hostIPv4 } from '@callplane/local-servers';
import {
  eventually,
  openTurnClient,
  repositoryRoot,
  startTestCoturn,
  stopAtEnd,
  temporaryDirectory,
  turnCredential,
  type TestApp,
  type TestCoturn,
  type TurnClient,
  type TurnClientOptions,
} from '@callplane/testing';
import { startStack, type Stack } from './faults/faults.testkit.js';

/** Addresses that a relay must not reach: private networks, metadata services, this machine. */
const REFUSED = [
  ...['0.0.0.0', '0.1.2.3', '10.1.2.3', '100.64.0.1', '127.0.0.1', '127.1.2.3', '169.254.169.254', '172.28.0.1'],
  ...['192.0.0.8', '192.168.1.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '255.255.255.255'],
];
const REFUSED_IPV6 = [
  ...['::', '::1', '::ffff:10.0.0.1', '::ffff:127.0.0.1', '::10.0.0.1', '64:ff9b::a00:1', '100::1', '2001::1'],
  ...['2001:db8::1', '2002:a00:1::', '3fff::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'ff02::1'],
];

interface Reached {
  host: string;
  port: number;
  secret: string;
}
const clientOf = async ({ host, port, secret }: Reached, subject: string, more: Partial<TurnClientOptions> = {}) => {
  const client = await openTurnClient({ host, port, ...turnCredential(secret, subject), ...more });
  stopAtEnd(async () => client.close());
  return client;
};
const answersOf = async (addresses: string[], ask: (address: string) => Promise<number>) => {
  const answers: [string, number][] = [];
  for (const address of addresses) answers.push([address, await ask(address)]);
  return answers;
};
const all = (addresses: string[], code: number) => addresses.map((address) => [address, code]);

describe('the relay policy', () => {
  let coturn: TestCoturn;
  beforeAll(async () => {
    coturn = await startTestCoturn({ moreRelayAddresses: ['::1'], userQuota: 3 });
  });

  test('allows no private or special IPv4 address, only the media server and public addresses', async () => {
    const client = await clientOf(coturn, 'env_1:reach');
    expect(await client.allocate()).toBe(0);
    expect(await answersOf(REFUSED, client.permit)).toEqual(all(REFUSED, 403));
    expect(await answersOf(REFUSED, (address) => client.bindChannel(0x4001, address, 6379))).toEqual(all(REFUSED, 403));
    expect(await answersOf([coturn.host, '8.8.8.8'], client.permit)).toEqual(all([coturn.host, '8.8.8.8'], 0));
  });

  test('allows no private or special IPv6 address, and none that embeds an IPv4 address', async () => {
    const client = await clientOf(coturn, 'env_1:ipv6');
    expect(await client.allocate({ family: 6 })).toBe(0);
    expect(await answersOf(REFUSED_IPV6, client.permit)).toEqual(all(REFUSED_IPV6, 403));
    expect(await client.permit('2a00::1')).toBe(0);
  });

  test('allows no TCP connection', async () => {
    const client = await clientOf(coturn, 'env_1:tcp', { transport: 'tcp' });
    expect(await client.allocate({ relay: 'tcp' })).toBe(442);
    expect(await client.allocate()).toBe(0);
    expect(await client.connect(coturn.host, 80)).toBe(403);
    expect(await client.connect('8.8.8.8', 80)).toBe(403);
  });

  test('limits the relays of a credential, and a renewed credential shares the quota', async () => {
    const session = newId('session');
    const codes: number[] = [];
    for (let expiry = 600; expiry < 604; expiry += 1) {
      const client = await clientOf(coturn, session, turnCredential(coturn.secret, session, expiry));
      codes.push(await client.allocate());
    }
    expect(codes).toEqual([0, 0, 0, 486]);
    expect(await (await clientOf(coturn, newId('session'))).allocate()).toBe(0);
    // Credentials of one environment differ in their last part, and each has its own quota.
    const environment: number[] = [];
    for (const random of ['a', 'a', 'a', 'a', 'b']) {
      environment.push(await (await clientOf(coturn, `env_quota:${random}`)).allocate());
    }
    expect(environment).toEqual([0, 0, 0, 486, 0]);
  });
});

test('the start script of the container passes the policy, the media servers and the quotas to coturn', async () => {
  const dir = temporaryDirectory('coturn-start');
  const [host, port, adminPort] = [hostIPv4(), await freePort(hostIPv4()), await freePort()];
  const policy = readFileSync(join(repositoryRoot, 'infra/coturn/turnserver.conf'), 'utf8');
  const ports = [
    `listening-port=${port}`,
    'min-port=32000',
    'max-port=32099',
    `pidfile=${dir}/pid`,
    `userdb=${dir}/db`,
  ];
  const files = {
    'policy.conf': `${policy}\n${ports.join('\n')}\n`,
    secret: 'north-secret',
    password: 'admin-secret',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  const child = spawn('sh', [join(repositoryRoot, 'infra/coturn/start.sh')], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      TURN_IP: host,
      MEDIA_IPS: '10.9.8.7,10.9.8.6',
      TURN_USER_QUOTA: '2',
      TURN_ADMIN_IP: '127.0.0.1',
      TURN_ADMIN_PORT: String(adminPort),
      TURN_CONFIG: join(dir, 'policy.conf'),
      TURN_RUN_DIR: dir,
      TURN_SECRET_FILE: join(dir, 'secret'),
      TURN_ADMIN_PASSWORD_FILE: join(dir, 'password'),
    },
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  stopAtEnd(async () => {
    child.kill();
    await exited;
  });
  const server = { host, port, secret: 'north-secret' };
  const client = await clientOf(server, 'env_1:start');
  await eventually(async () => (await client.allocate().catch(() => 1)) === 0);
  expect(await answersOf(['10.9.8.7', '10.9.8.6'], client.permit)).toEqual(all(['10.9.8.7', '10.9.8.6'], 0));
  const refused = ['10.9.8.5', '169.254.169.254', host];
  expect(await answersOf(refused, client.permit)).toEqual(all(refused, 403));
  const codes: number[] = [];
  for (let count = 0; count < 3; count += 1) codes.push(await (await clientOf(server, 'env_1:more')).allocate());
  expect(codes).toEqual([0, 0, 486]);
  child.kill();
  await exited;
});

describe('relays of ended sessions', () => {
  let coturn: TestCoturn;
  let stack: Stack;
  let api: TestApp;
  beforeAll(async () => {
    [stack, coturn] = await Promise.all([startStack(), startTestCoturn()]);
    const env = {
      TURN_SECRET: coturn.secret,
      TURN_URLS: `turn:${coturn.host}:${coturn.port}?transport=udp`,
    };
    const admin = { TURN_ADMIN_URLS: coturn.adminUrl, TURN_ADMIN_PASSWORD: coturn.adminPassword };
    [api] = await Promise.all([stack.spawnApi(env), stack.spawnWorker({ ...env, ...admin })]);
  });

  const call = (method: string, path: string, body?: object) =>
    stack.call(api, method, path, body === undefined ? {} : { body });
  /** A participant with a session, and the relay credential of the session. */
  const participantIn = async (roomId: string) => {
    const { participantId } = (await call('POST', `/v1/rooms/${roomId}/tokens`, { participantName: 'Ada' })).body;
    const id = newId('session');
    const { environmentId } = stack.tenant;
    const data = { id, environmentId, roomId, participantId, startedAt: new Date() };
    await stack.database.prisma.participantSession.create({ data });
    const { body } = await call('POST', '/v1/turn/credentials', { roomId, sessionId: id });
    return { participantId, username: body.username, credential: body.iceServers.at(-1).credential };
  };
  /** Counts the packets that arrive at the address that relays may reach. */
  const listen = async () => {
    const socket = createSocket('udp4');
    stopAtEnd(async () => void socket.close());
    const packets: string[] = [];
    socket.on('message', (message) => packets.push(message.toString()));
    await new Promise<void>((resolve) => socket.bind(0, coturn.host, resolve));
    return { packets, port: socket.address().port };
  };
  /** Keeps its relay alive with every means of TURN and sends through it. */
  const cling = (client: TurnClient, name: string, port: number) => {
    const sending = setInterval(() => client.send(coturn.host, port, Buffer.from(name)), 20);
    const keeping = setInterval(() => {
      void client.refresh(600).catch(() => undefined);
      void client.permit(coturn.host).catch(() => undefined);
    });
    stopAtEnd(async () => {
      clearInterval(sending);
      clearInterval(keeping);
    });
  };
  const relayed = async (credential: { username: string; credential: string }, name: string, port: number) => {
    const client = await clientOf(coturn, '', credential);
    expect([await client.allocate(), await client.permit(coturn.host)]).toEqual([0, 0]);
    cling(client, name, port);
    return client;
  };

  test.each(['participant.remove', 'room.end'])(
    'after %s, the relay of a client that keeps refreshing is closed, and a new one of the same credential soon',
    async (kind) => {
      const roomId = await stack.newRoom(api);
      const [gone, other] = [await participantIn(roomId), await participantIn(await stack.newRoom(api))];
      const { packets, port } = await listen();
      await relayed(gone, 'gone', port);
      const staying = await relayed(other, 'other', port);
      await eventually(() => ['gone', 'other'].every((name) => packets.includes(name)));

      const path = kind === 'room.end' ? '' : `/participants/${gone.participantId}`;
      const answer = await call('DELETE', `/v1/rooms/${roomId}${path}`);
      if (answer.status === 202) {
        await eventually(async () => {
          const { body } = await call('GET', `/v1/rooms/${roomId}${path}/runtime-operation`);
          return body.status === 'completed';
        });
      } else expect(answer.status).toBe(204);

      // The contract allows five seconds; the worker closes the relay before the operation completes. Packets in flight
      // at that moment arrive before ten more packets of the other client.
      const othersAfter = (from: number) => packets.slice(from).filter((name) => name === 'other').length;
      const completed = packets.length;
      await eventually(() => othersAfter(completed) > 10);
      const before = packets.length;
      await eventually(() => othersAfter(before) > 50);
      expect(packets.slice(before)).not.toContain('gone');
      expect(await staying.refresh()).toBe(0);

      // coturn accepts the credential until it expires; the cleanup worker closes each relay that uses it.
      const again = await clientOf(coturn, '', gone);
      expect(await again.allocate()).toBe(0);
      await eventually(async () => (await again.refresh()) === 437);
    },
  );
});
