import { spawn } from 'node:child_process';
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
  type TestCoturn,
  type TurnClientOptions,
} from '@callplane/testing';

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
