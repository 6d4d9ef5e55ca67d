import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket as TcpSocket } from 'node:net';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { stopAtEnd } from '@callplane/testing';
import { DnsFailure, systemResolver, type Resolver } from './resolver.js';

const A = 1;
const AAAA = 28;
/**
 * The answer of the test DNS server for a name: addresses, an error code, or no answer. `silence` drops the queries of one
 * type, and `truncated` sends them to TCP, where nothing answers.
 */
type Answer =
  | { A?: string[]; AAAA?: string[]; silence?: number; truncated?: number; lost?: number }
  | { code: 2 | 3 }
  | 'silence';

const ZONE: Record<string, Answer> = {
  'both.test': { A: ['192.0.2.1', '192.0.2.2'], AAAA: ['2001:db8::1'] },
  'six.test': { AAAA: ['2001:db8::2'] },
  'nothing.test': {},
  'missing.test': { code: 3 },
  'broken.test': { code: 2 },
  'silent.test': 'silence',
  'no-aaaa.test': { A: ['192.0.2.3'], silence: AAAA },
  'no-a.test': { AAAA: ['2001:db8::3'], silence: A },
  'tcp.test': { A: ['192.0.2.4'], truncated: AAAA },
  'slow.test': { A: ['192.0.2.5'] },
  'lost.test': { A: ['192.0.2.6'], lost: 2 },
};

/** Answers a query like a DNS server over UDP (RFC 1035). Returns null for no answer. */
function respond(query: Buffer, asked: string[]): Buffer | null {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  const type = query.readUInt16BE(at + 1);
  const name = labels.join('.').toLowerCase();
  asked.push(name);
  const answer = ZONE[name] ?? { code: 3 };
  if (answer === 'silence' || ('silence' in answer && answer.silence === type)) return null;
  if ('lost' in answer && asked.filter((each) => each === name).length <= (answer.lost ?? 0)) return null;
  const addresses = 'code' in answer ? [] : ((type === A ? answer.A : type === AAAA ? answer.AAAA : []) ?? []);
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  const isTruncated = 'truncated' in answer && answer.truncated === type;
  head.writeUInt16BE(0x8180 | ('code' in answer ? answer.code : 0) | (isTruncated ? 0x0200 : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => {
    const bytes = type === A ? Buffer.from(address.split('.').map(Number)) : ipv6(address);
    const record = Buffer.alloc(12);
    record.writeUInt16BE(0xc00c, 0);
    record.writeUInt16BE(type, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt32BE(60, 6);
    record.writeUInt16BE(bytes.length, 10);
    return Buffer.concat([record, bytes]);
  });
  return Buffer.concat([head, query.subarray(12, at + 5), ...records]);
}

/** Encodes an address of the form `a:b::c`. */
function ipv6(address: string): Buffer {
  const [left = '', right = ''] = address.split('::').map((half) =>
    half
      .split(':')
      .map((group) => group.padStart(4, '0'))
      .join(''),
  );
  return Buffer.from(left.padEnd(32 - right.length, '0') + right, 'hex');
}

/** Binds a UDP socket to the port of `tcp`. Another program may hold that port for one of the two protocols. */
async function bindBoth(tcp: Server): Promise<Socket> {
  for (let attempts = 10; ; attempts--) {
    const udp = createSocket('udp4');
    try {
      await once(udp.bind(0, '127.0.0.1'), 'listening');
      await once(tcp.listen(udp.address().port, '127.0.0.1'), 'listening');
      return udp;
    } catch (error) {
      udp.close();
      if (attempts === 1 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

let resolver: Resolver;
let address: string;
const asked: string[] = [];
beforeAll(async () => {
  const open = new Set<TcpSocket>();
  const tcp = createServer((socket) => open.add(socket.on('error', () => undefined)));
  stopAtEnd(() => {
    for (const socket of open) socket.destroy();
    return new Promise<void>((resolve) => tcp.close(() => resolve()));
  });
  const server = await bindBoth(tcp);
  stopAtEnd(() => new Promise<void>((resolve) => server.close(() => resolve())));
  server.on('message', (query, from) => {
    const answer = respond(query, asked);
    const afterMs = asked.at(-1) === 'slow.test' ? 3000 : 0;
    if (answer !== null) setTimeout(() => server.send(answer, from.port, from.address), afterMs);
  });
  address = `127.0.0.1:${server.address().port}`;
  resolver = systemResolver({ servers: [address] });
});

const resolve = (name: string) => resolver.resolve(name, new AbortController().signal);

describe('the system resolver with a DNS server', () => {
  test('returns the addresses of both families, IPv4 first', async () => {
    expect((await resolve('both.test')).sort()).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1']);
    expect((await resolve('both.test')).at(-1)).toBe('2001:db8::1');
    expect(await resolve('six.test')).toEqual(['2001:db8::2']);
    expect((await resolve('both.test.')).length).toBe(3);
  });

  test.each([
    ['missing.test', 'ENOTFOUND'],
    ['nothing.test', 'ENODATA'],
    ['broken.test', 'ESERVFAIL'],
  ])('rejects %s with %s', async (name, code) => {
    await expect(resolve(name)).rejects.toEqual(expect.objectContaining({ name: 'DnsFailure', code }));
    await expect(resolve(name)).rejects.toBeInstanceOf(DnsFailure);
  });

  test.each([
    ['no-aaaa.test', ['192.0.2.3']],
    ['no-a.test', ['2001:db8::3']],
    ['tcp.test', ['192.0.2.4']],
  ])('does not wait for the other family of %s, which nobody answers', async (name, addresses) => {
    const deadline = AbortSignal.timeout(5000);
    expect(await resolver.resolve(name, deadline)).toEqual(addresses);
    expect(deadline.aborted).toBe(false);
  });

  test('lets a slow server answer within the deadline, and asks again if a query was lost', async () => {
    const both = ['slow.test', 'lost.test'].map((name) => resolver.resolve(name, AbortSignal.timeout(5000)));
    expect(await Promise.all(both)).toEqual([['192.0.2.5'], ['192.0.2.6']]);
  });

  test('asks the next server if the first one is dead', async () => {
    const dead = createSocket('udp4');
    await once(dead.bind(0, '127.0.0.1'), 'listening');
    stopAtEnd(() => new Promise<void>((resolve) => dead.close(() => resolve())));
    const servers = [`127.0.0.1:${dead.address().port}`, address];
    const addresses = await systemResolver({ servers }).resolve('both.test', AbortSignal.timeout(5000));
    expect(addresses).toHaveLength(3);
    await expect(systemResolver({ servers }).resolve('missing.test', AbortSignal.timeout(5000))).rejects.toMatchObject({
      code: 'ENOTFOUND',
    });
  });

  test('never queries the server for localhost names', async () => {
    asked.length = 0;
    expect(await resolve('localhost')).toEqual(['127.0.0.1', '::1']);
    expect(await resolve('app.localhost')).toEqual(['127.0.0.1', '::1']);
    expect(asked).toEqual([]);
  });

  test('cancels its query when the signal aborts', async () => {
    const end = new AbortController();
    const startedAt = performance.now();
    setTimeout(() => end.abort(), 100);
    await expect(resolver.resolve('silent.test', end.signal)).rejects.toMatchObject({ code: 'DNS_TIMEOUT' });
    // The query itself would time out after 5 s.
    expect(performance.now() - startedAt).toBeLessThan(4500);
  });
});
