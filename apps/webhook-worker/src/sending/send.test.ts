import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { createAddressFilter, createPortFilter, shownRequestHeaders, WEBHOOK_PORTS_DEFAULT } from '@callplane/core';
import { eventually, stopAtEnd } from '@callplane/testing';
import { DnsFailure, type Resolver } from '../destinations/resolver.js';
import {
  makeCertificates,
  startReceiver,
  startTarPit,
  startTcpReceiver,
  type Certificates,
} from '../receivers.testkit.js';
import { connect } from 'node:net';
import { createServer, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { PinnedAgents } from './pinned-agents.js';
import { send, type SendDeps } from './send.js';

const agents = new PinnedAgents();
let certificates: Certificates;
beforeAll(() => {
  certificates = makeCertificates();
  stopAtEnd(async () => agents.close());
});

/** A resolver whose names lead to this machine by default. It records the names in `asked`. */
const names = (addresses: Record<string, string[]> = {}): Resolver & { asked: string[] } => {
  const asked: string[] = [];
  return {
    asked,
    resolve: (hostname) => {
      asked.push(hostname);
      return Promise.resolve(addresses[hostname] ?? ['127.0.0.1']);
    },
  };
};
/** OpenSSL's reasons for bytes that are not TLS, of its versions 3.0 and later. */
const NOT_TLS = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/;
/** For receivers that never answer. The other attempts have time enough for a busy machine. */
const HASTY = { deliveryDeadlineMs: 1500 };
const deps = (more: Partial<SendDeps> = {}): SendDeps => ({
  resolver: names(),
  agents,
  isAllowedAddress: createAddressFilter(['127.0.0.0/8']),
  isAllowedPort: createPortFilter(WEBHOOK_PORTS_DEFAULT),
  allowHttp: true,
  deliveryDeadlineMs: 60_000,
  dnsDeadlineMs: 30_000,
  ...more,
});
const DELIVERY = {
  id: 'dlv_1',
  eventId: 'evt_1',
  replayCount: 0,
  secretVersion: 1,
  body: '{}',
  traceparent: null,
  standardWebhooks: false,
  headers: {},
  startedAt: new Date('2030-01-01T12:00:00.000Z'),
};
const attempt = (url: string, more: Partial<SendDeps> = {}) => send(deps(more), { ...DELIVERY, url }, 's');

/** Starts a receiver that sends `head`, and then a byte every 50 ms forever. */
const drip = (head: string) =>
  startTcpReceiver((socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write('x'), 50);
    socket.once('close', () => clearInterval(timer));
  });

describe('the outcome of a failed attempt', () => {
  test('is `dns` for a name that does not exist or takes too long to resolve', async () => {
    const missing: Resolver = { resolve: () => Promise.reject(new DnsFailure('ENOTFOUND')) };
    expect(await attempt('http://receiver.test/', { resolver: missing })).toMatchObject({
      outcome: 'dns',
      errorCode: 'ENOTFOUND',
      address: null,
      statusCode: null,
    });
    let cancelled = false;
    const hanging: Resolver = {
      resolve: (_hostname, signal) => {
        signal.addEventListener('abort', () => {
          cancelled = true;
        });
        return new Promise(() => undefined);
      },
    };
    const late = await attempt('http://receiver.test/', { resolver: hanging, dnsDeadlineMs: 200 });
    expect(late).toMatchObject({ outcome: 'dns', errorCode: 'DNS_TIMEOUT' });
    expect(late.durationMs).toBeLessThan(30_000);
    expect(cancelled).toBe(true);
  });

  test('is `connect` if the port refuses connections', async () => {
    const receiver = await startReceiver();
    await receiver.close();
    expect(await attempt(receiver.url)).toMatchObject({
      outcome: 'connect',
      errorCode: 'ECONNREFUSED',
      address: '127.0.0.1',
      timings: { connectMs: null },
    });
  });

  test.each([
    ['expired', 'CERT_HAS_EXPIRED'],
    ['notYetValid', 'CERT_NOT_YET_VALID'],
    ['wrongName', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['selfSigned', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  ] as const)('is `tls` for the certificate "%s"', async (which, errorCode) => {
    const receiver = await startReceiver(undefined, certificates[which]);
    const certificateAuthority = certificates.authority;
    const url = `https://receiver.test:${receiver.port}/`;
    expect(await attempt(url, { certificateAuthority })).toMatchObject({ outcome: 'tls', errorCode, statusCode: null });
    expect(receiver.requests).toHaveLength(0);
  });

  test('is `tls` for a receiver without TLS, and `timeout` for a silent one', async () => {
    const plain = await startReceiver();
    expect(await attempt(`https://receiver.test:${plain.port}/`)).toMatchObject({
      outcome: 'tls',
      errorCode: expect.stringMatching(NOT_TLS),
    });
    const silent = await startTarPit();
    expect(await attempt(`https://receiver.test:${silent.port}/`, HASTY)).toMatchObject({
      outcome: 'timeout',
      errorCode: 'TLS_TIMEOUT',
    });
  });

  test('is `tls` with the reason of OpenSSL if the receiver refuses the client', async () => {
    const { authority: certificateAuthority, good } = certificates;
    const codeOf = async (options: TlsOptions) => {
      const receiver = await startReceiver(undefined, { ...good, ...options });
      const answer = await attempt(`https://receiver.test:${receiver.port}/`, { certificateAuthority });
      expect(answer).toMatchObject({ outcome: 'tls', statusCode: null });
      expect(receiver.requests).toHaveLength(0);
      return answer.errorCode;
    };
    const demanding = { requestCert: true, rejectUnauthorized: true };
    expect(await codeOf(demanding)).toBe('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED');
    expect(await codeOf({ ...demanding, maxVersion: 'TLSv1.2' })).toMatch(/^ERR_SSL_.*ALERT_HANDSHAKE_FAILURE$/);
    // The alert of TLS for a name that the receiver does not know.
    const nameless = await startTcpReceiver((socket) => socket.end(Buffer.from([21, 3, 3, 0, 2, 2, 112])));
    expect(await attempt(`https://receiver.test:${nameless.port}/`)).toMatchObject({
      outcome: 'tls',
      errorCode: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME',
    });
  });

  test('is `response` for a reset, an early close and invalid HTTP', async () => {
    const cases: [string, (socket: Socket) => void, number | null][] = [
      ['ECONNRESET', (socket) => socket.resetAndDestroy(), null],
      ['ECONNRESET', (socket) => socket.end(), null],
      ['HPE_INVALID_CONSTANT', (socket) => socket.end('lorem ipsum\r\n\r\n'), null],
      ['HPE_INVALID_VERSION', (socket) => socket.end('HTTP/2 200 OK\r\n\r\n'), null],
      // The end of the status line is not safe to read.
      ['HPE_STRICT', (socket) => socket.end('HTTP/1.1 200 OK\rcontent-length: 0\r\n\r\n'), null],
    ];
    for (const [errorCode, handle, statusCode] of cases) {
      const receiver = await startTcpReceiver(handle);
      expect(await attempt(receiver.url)).toMatchObject({ outcome: 'response', errorCode, statusCode });
      expect(receiver.requests).toHaveLength(1);
    }
  });

  test('is `timeout` if the receiver hangs or drips its response head', async () => {
    const silent = await startTarPit();
    expect(await attempt(silent.url, HASTY)).toMatchObject({
      outcome: 'timeout',
      errorCode: 'RESPONSE_TIMEOUT',
      statusCode: null,
      responseBody: null,
    });
    expect(await attempt((await drip('HTTP/1.1 200 OK\r\nx: ')).url, HASTY)).toMatchObject({
      outcome: 'timeout',
      errorCode: 'RESPONSE_TIMEOUT',
    });
    await eventually(() => silent.open.size === 0);
  });
});

describe('the answer of a receiver', () => {
  test('is recorded with its status, from 200 to 599', async () => {
    const receiver = await startReceiver((request, response) => {
      response.writeHead(Number(request.url?.slice(1))).end();
    });
    const base = `http://127.0.0.1:${receiver.port}`;
    for (let status = 200; status <= 599; status += 1) {
      const success = status < 300;
      expect(await attempt(`${base}/${status}`)).toMatchObject({
        outcome: success ? 'success' : 'response',
        errorCode: success ? null : `HTTP_${status}`,
        statusCode: status,
      });
    }
    expect(receiver.requests).toHaveLength(400);
  });

  test.each([
    ['lengths of two kinds', '\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
    ['two equal lengths', '\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok'],
    ['lines without CR', '\ncontent-length: 2\n\nok'],
    ['folded lines', '\r\nx: a\r\n  b\r\n\r\n'],
    ['17 KiB', `\r\nx: ${'y'.repeat(17 * 1024)}\r\n\r\n`],
    ['no end', `\r\nx: ${'y'.repeat(100_000)}`],
    ['a control character', '\r\nx: a\u0000b\r\n\r\n'],
  ])('decides by its status although its head has %s', async (_what, rest) => {
    for (const [statusCode, interim] of [
      [200, ''],
      [410, ''],
      [503, 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
    ] as const) {
      const isSuccess = statusCode === 200;
      // In two pieces, as from a network: the parser refuses the second one.
      const receiver = await startTcpReceiver((socket) => {
        socket.write(`${interim}HTTP/1.1 ${statusCode} X${rest.slice(0, 3)}`);
        setTimeout(() => socket.write(rest.slice(3)), 20);
      });
      expect(await attempt(receiver.url)).toMatchObject({
        outcome: isSuccess ? 'success' : 'response',
        errorCode: isSuccess ? null : `HTTP_${statusCode}`,
        statusCode,
        responseTruncated: true,
        timings: { firstByteMs: expect.any(Number) },
      });
      // Nothing else of the connection is read.
      await eventually(() => receiver.open.size === 0);
      expect(receiver.requests).toHaveLength(1);
    }
  });

  test('is skipped if it is an interim 1xx, and is final if it is a 101', async () => {
    const answers = (text: string) => startTcpReceiver((socket) => socket.write(text));
    const ok = 'HTTP/1.1 204 No Content\r\n\r\n';
    for (const interim of ['100 Continue', '102 Processing', '103 Early Hints', '199 Custom']) {
      const receiver = await answers(`HTTP/1.1 ${interim}\r\n\r\n${ok}`);
      expect(await attempt(receiver.url)).toMatchObject({ outcome: 'success', statusCode: 204 });
    }
    const alone = await answers('HTTP/1.1 100 Continue\r\n\r\n');
    expect(await attempt(alone.url, HASTY)).toMatchObject({ outcome: 'timeout', errorCode: 'RESPONSE_TIMEOUT' });
    const upgrade = await answers('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
    expect(await attempt(upgrade.url)).toMatchObject({ outcome: 'response', errorCode: 'HTTP_101', statusCode: 101 });
  });

  test('is kept up to its first 1 KiB, as text', async () => {
    const bodies: Record<string, Buffer> = {
      '/long': Buffer.from('é'.repeat(600)),
      '/odd': Buffer.from(`a${'é'.repeat(600)}`),
      '/zero': Buffer.from('a\u0000b'),
      '/binary': Buffer.from([0x61, 0xff, 0xfe, 0x62]),
      '/short': Buffer.from('fine'),
    };
    const receiver = await startReceiver((request, response) => response.end(bodies[request.url ?? '']));
    const base = `http://127.0.0.1:${receiver.port}`;
    expect(await attempt(`${base}/long`)).toMatchObject({ responseBody: 'é'.repeat(512), responseTruncated: true });
    expect(await attempt(`${base}/odd`)).toMatchObject({
      responseBody: `a${'é'.repeat(511)}`,
      responseTruncated: true,
    });
    expect(await attempt(`${base}/zero`)).toMatchObject({ responseBody: 'ab', responseTruncated: false });
    expect(await attempt(`${base}/binary`)).toMatchObject({ responseBody: 'a\ufffd\ufffdb' });
    expect(await attempt(`${base}/short`)).toMatchObject({ responseBody: 'fine', responseTruncated: false });
  });

  test.each([
    [200, 'success', null],
    [404, 'response', 'HTTP_404'],
    [503, 'response', 'HTTP_503'],
  ])('decides the outcome by its status %i while its body drips', async (statusCode, outcome, errorCode) => {
    const receiver = await drip(`HTTP/1.1 ${statusCode} X\r\ncontent-length: 100000\r\n\r\n`);
    // The deadline is far away, so the early end comes from the time limit of the body.
    const answer = await attempt(receiver.url);
    expect(answer).toMatchObject({ outcome, errorCode, statusCode, responseTruncated: true });
    expect(answer.responseBody).toMatch(/^x+$/);
    await eventually(() => receiver.open.size === 0);
  });

  test('decides the outcome by its status although its body breaks off, never begins, or exceeds the deadline', async () => {
    const whole = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n';
    const broken = await startTcpReceiver((socket) => socket.end(`${whole}five!`));
    const reset = await startTcpReceiver((socket) => socket.write(whole, () => socket.resetAndDestroy()));
    const silent = await startTcpReceiver((socket) => socket.write(whole));
    for (const [receiver, responseBody] of [
      [broken, 'five!'],
      [reset, ''],
      [silent, ''],
    ] as const) {
      expect(await attempt(receiver.url, HASTY)).toMatchObject({
        outcome: 'success',
        errorCode: null,
        statusCode: 200,
        responseBody,
        responseTruncated: true,
      });
    }
  });

  test('is read no further than the log keeps', async () => {
    let sent = 0;
    const receiver = await startReceiver((_request, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384, 'x'))) sent += 16_384;
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    });
    const answer = await attempt(receiver.url, { deliveryDeadlineMs: 5000 });
    expect(answer).toMatchObject({ outcome: 'success', statusCode: 200, responseTruncated: true });
    expect(answer.responseBody).toHaveLength(1024);
    await eventually(() => receiver.open.size === 0);
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  test('is not decompressed', async () => {
    const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024));
    const receiver = await startReceiver((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    });
    const before = process.memoryUsage().arrayBuffers;
    expect(await attempt(receiver.url, { deliveryDeadlineMs: 5000 })).toMatchObject({
      outcome: 'success',
      responseTruncated: true,
    });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(5 * 1024 * 1024);
    expect(receiver.requests[0]!.headers['accept-encoding']).toBeUndefined();
  });

  test('is not followed if it redirects, here to a private address', async () => {
    const inside = await startReceiver();
    const receiver = await startReceiver((_request, response) => {
      response.writeHead(307, { location: `http://127.0.0.1:${inside.port}/` }).end();
    });
    expect(await attempt(receiver.url)).toMatchObject({
      outcome: 'response',
      errorCode: 'HTTP_307',
      statusCode: 307,
      exchange: { responseHeaders: { location: `http://127.0.0.1:${inside.port}/` } },
    });
    expect(inside.connections).toBe(0);
  });

  test('has timings over TLS, with a certificate that is verified for the host name of the URL', async () => {
    const receiver = await startReceiver((_request, response) => {
      setTimeout(() => response.end(), 50);
    }, certificates.good);
    const answer = await attempt(`https://receiver.test:${receiver.port}/`, {
      certificateAuthority: certificates.authority,
    });
    expect(answer).toMatchObject({ outcome: 'success', statusCode: 200 });
    expect(answer.timings.dnsMs).toBeGreaterThanOrEqual(0);
    expect(answer.timings.connectMs).toBeGreaterThan(0);
    expect(answer.timings.tlsMs).toBeGreaterThan(0);
    expect(answer.timings.firstByteMs).toBeGreaterThan(40);
    expect(receiver.requests[0]!.headers.host).toBe(`receiver.test:${receiver.port}`);
  });

  test('logs the headers of its request with cut signatures, and selected headers of a bad answer', async () => {
    const receiver = await startReceiver((_request, response) => {
      const location = 'x'.repeat(1000);
      response.writeHead(503, { server: 'nginx', location, 'set-cookie': 'id=1', 'x-other': 'y' }).end();
    });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const claim = { ...DELIVERY, standardWebhooks: true, traceparent, replayCount: 2, url: receiver.url };
    const { exchange } = await send(deps(), claim, 'whsec_c2VjcmV0');
    expect(exchange!.responseHeaders).toEqual({ server: 'nginx', location: 'x'.repeat(200) });
    const { host, connection, 'content-length': length, ...sent } = receiver.requests[0]!.headers;
    expect([host, connection, length]).toEqual([`127.0.0.1:${receiver.port}`, 'keep-alive', '2']);
    const shown = shownRequestHeaders(exchange!.request!, {
      deliveryId: claim.id,
      eventId: claim.eventId,
      replayCount: 2,
      signingKeyVersion: claim.secretVersion,
    });
    // Everything that was sent is shown, and of both signatures only their beginnings.
    const cut = (value: unknown, begin: string) => String(value).slice(0, String(value).indexOf(begin) + 3 + 8) + '…';
    expect(shown).toEqual({
      ...sent,
      'x-service-signature': cut(sent['x-service-signature'], 'v1='),
      'webhook-signature': cut(sent['webhook-signature'], 'v1,'),
    });
    expect(shown['x-service-signature']).toMatch(/^t=\d+,v1=[0-9a-f]{8}…$/);
  });

  test('carries the headers of the endpoint, which cannot replace its own, and logs them masked', async () => {
    const receiver = await startReceiver();
    const headers = { authorization: 'Bearer secret', 'content-type': 'text/plain' };
    const { exchange } = await send(deps(), { ...DELIVERY, headers, url: receiver.url }, 's');
    expect(receiver.requests[0]!.headers).toMatchObject({
      authorization: 'Bearer secret',
      'content-type': 'application/json',
    });
    expect(JSON.stringify(exchange)).not.toContain('Bearer');
    const shown = shownRequestHeaders(exchange!.request!, { ...DELIVERY, deliveryId: 'dlv_1', signingKeyVersion: 1 });
    expect(shown).toMatchObject({ authorization: '***', 'content-type': 'application/json' });
  });

  test('passes on the trace of its event under a new parent, and without OpenTelemetry begins none', async () => {
    const receiver = await startReceiver();
    const trace = '00-0af7651916cd43dd8448eb211c80319c-';
    for (const traceparent of [`${trace}b7ad6b7169203331-01`, null]) {
      await send(deps(), { ...DELIVERY, traceparent, url: receiver.url }, 's');
    }
    const [traced, untraced] = receiver.requests.map(({ headers }) => headers.traceparent);
    expect(traced).toMatch(new RegExp(`^${trace}(?!b7ad6b7169203331)[0-9a-f]{16}-01$`));
    expect(untraced).toBeUndefined();
  });
});

describe('the destination of an attempt', () => {
  const publicOnly = createAddressFilter([]);

  test.each([
    ['a literal private address', 'http://10.0.0.1/'],
    ['another spelling of a private address', 'http://0x7f.1/'],
    ['IPv6 loopback', 'http://[::1]/'],
    ['a URL with a user name', 'http://user@receiver.test/'],
    ['a URL with another scheme', 'ftp://receiver.test/'],
  ])('is blocked before its name is resolved if it is %s', async (_what, url) => {
    const resolver = names();
    expect(await attempt(url, { isAllowedAddress: publicOnly, resolver })).toMatchObject({
      outcome: 'blocked',
      address: null,
    });
    expect(resolver.asked).toEqual([]);
  });

  test('is blocked if it uses http and http is not allowed', async () => {
    expect(await attempt('http://127.0.0.1/', { allowHttp: false })).toMatchObject({ outcome: 'blocked' });
  });

  test('is blocked if its name has public and private addresses, in any order', async () => {
    for (const addresses of [
      ['93.184.216.34', '10.0.0.1'],
      ['10.0.0.1', '93.184.216.34'],
      ['2606:2800:220:1::1', '::ffff:10.0.0.1'],
    ]) {
      const resolver = names({ 'mixed.test': addresses });
      expect(await attempt('http://mixed.test/', { resolver, isAllowedAddress: publicOnly })).toMatchObject({
        outcome: 'blocked',
        errorCode: 'ADDRESS_NOT_PUBLIC',
        address: null,
      });
    }
  });

  test('is not looked up a second time, so that a DNS change after the check has no effect', async () => {
    const receiver = await startReceiver();
    const asked: string[] = [];
    const rebinding: Resolver = {
      resolve: (hostname) => {
        asked.push(hostname);
        return Promise.resolve(asked.length === 1 ? ['127.0.0.1'] : ['127.0.0.2']);
      },
    };
    // No resolver of this machine knows this name, so a look-up by got or Node would fail.
    const url = `http://rebinding.invalid:${receiver.port}/`;
    expect(await attempt(url, { resolver: rebinding })).toMatchObject({ outcome: 'success', address: '127.0.0.1' });
    expect(asked).toEqual(['rebinding.invalid']);
    // The next attempt resolves again and does not reuse the open connection to the previous address.
    expect(await attempt(url, { resolver: rebinding })).toMatchObject({ outcome: 'connect', address: '127.0.0.2' });
    expect(receiver.requests).toHaveLength(1);
  });

  test('is tried at its next address if a connection fails', async () => {
    const receiver = await startReceiver();
    const resolver = names({ 'two.test': ['127.0.0.2', '127.0.0.1'], 'none.test': ['127.0.0.2', '127.0.0.3'] });
    const url = (name: string) => `http://${name}:${receiver.port}/`;
    const earlierAddresses = [{ address: '127.0.0.2', errorCode: 'ECONNREFUSED', durationMs: expect.any(Number) }];
    expect(await attempt(url('two.test'), { resolver })).toMatchObject({
      outcome: 'success',
      address: '127.0.0.1',
      exchange: { request: { signature: expect.any(String) }, earlierAddresses },
    });
    expect(await attempt(url('none.test'), { resolver })).toMatchObject({
      outcome: 'connect',
      address: '127.0.0.3',
      exchange: { request: null, earlierAddresses },
    });
    expect(receiver.requests).toHaveLength(1);
  });
});

describe('the limits of a destination', () => {
  test('allow at most two tried addresses of each family', async () => {
    const receiver = await startReceiver();
    const many = Array.from({ length: 2500 }, (_, index) => `127.1.${index >> 8}.${index & 255}`);
    const resolver = names({ 'many.test': [...many, '::1', '::2', '::3'] });
    const tried: string[] = [];
    class Watched extends PinnedAgents {
      override of(to: URL, address: string) {
        tried.push(address);
        return super.of(to, address);
      }
    }
    const watched = new Watched();
    const isAllowedAddress = createAddressFilter(['127.0.0.0/8', '::/120']);
    const url = `http://many.test:${receiver.port}/`;
    expect(await attempt(url, { resolver, isAllowedAddress, agents: watched, deliveryDeadlineMs: 5000 })).toMatchObject(
      {
        outcome: 'connect',
      },
    );
    expect(tried).toEqual(['127.1.0.0', '127.1.0.1', '::1', '::2']);
    await watched.close();
  });

  test('block an attempt if any address is unsafe, even one that would not be tried', async () => {
    const resolver = names({ 'many.test': ['127.0.0.1', '127.0.0.1', '127.0.0.1', '10.0.0.1'] });
    const receiver = await startReceiver();
    expect(await attempt(`http://many.test:${receiver.port}/`, { resolver })).toMatchObject({
      outcome: 'blocked',
      errorCode: 'ADDRESS_NOT_PUBLIC',
    });
    expect(receiver.connections).toBe(0);
  });

  test('block a port that is not allowed before the name is resolved', async () => {
    const resolver = names();
    expect(await attempt('http://receiver.test:25/', { resolver })).toMatchObject({
      outcome: 'blocked',
      errorCode: 'URL_NOT_ALLOWED',
    });
    expect(resolver.asked).toEqual([]);
  });
});

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

describe('a connection that the receiver closes after its answer', () => {
  /** A receiver that answers the first request of each connection. The fate of the next one decides the case. */
  const closing = (answersFirst: boolean, onNext: (socket: Socket) => void) =>
    startTcpReceiver((socket) => {
      socket.on('data', () => onNext(socket));
      if (answersFirst) socket.write(OK);
      else socket.destroy();
    });

  test.each([
    ['reset', (socket: Socket) => void socket.resetAndDestroy()],
    ['end', (socket: Socket) => void socket.end()],
  ])('costs no attempt: the request is sent again on a fresh one after a %s', async (_, close) => {
    const receiver = await closing(true, close);
    for (let n = 0; n < 5; n += 1) expect(await attempt(receiver.url)).toMatchObject({ outcome: 'success' });
    // Every second request finds the connection of the one before. A fresh connection takes one request only.
    expect(receiver.connections).toBe(5);
  });

  test('is not sent to again once a byte of an answer has come, or if no request has used it before', async () => {
    const partly = await closing(true, (socket) => socket.end('HTTP/1.1 2'));
    expect(await attempt(partly.url)).toMatchObject({ outcome: 'success' });
    expect(await attempt(partly.url)).toMatchObject({ outcome: 'response', statusCode: null });
    expect(partly.connections).toBe(1);
    const never = await closing(false, () => undefined);
    expect(await attempt(never.url)).toMatchObject({ outcome: 'response', errorCode: 'ECONNRESET' });
    expect(never.connections).toBe(1);
  });

  test('is sent to again only once', async () => {
    let requests = 0;
    const receiver = await startTcpReceiver((socket) => {
      socket.on('data', () => socket.destroy());
      requests += 1;
      if (requests === 1) socket.write(OK);
      else socket.destroy();
    });
    expect(await attempt(receiver.url)).toMatchObject({ outcome: 'success' });
    expect(await attempt(receiver.url)).toMatchObject({ outcome: 'response', errorCode: 'ECONNRESET' });
    expect(receiver.connections).toBe(2);
  });
});

describe('pinned agents', () => {
  test('reuse a connection for the same origin and address', async () => {
    const receiver = await startReceiver();
    for (let n = 0; n < 5; n += 1) expect(await attempt(receiver.url)).toMatchObject({ outcome: 'success' });
    expect(receiver.connections).toBe(1);
  });

  test('that the cache drops finish their request, and close their idle connection', async () => {
    const few = new PinnedAgents({ max: 1 });
    stopAtEnd(() => few.close());
    const answers: (() => void)[] = [];
    const slow = await startTcpReceiver((socket) => answers.push(() => socket.write(OK)));
    const other = await startReceiver();
    const first = attempt(slow.url, { agents: few });
    await eventually(() => answers.length === 1);
    expect(await attempt(other.url, { agents: few })).toMatchObject({ outcome: 'success' });
    answers[0]!();
    expect(await first).toMatchObject({ outcome: 'success' });
    await eventually(() => slow.open.size === 0);
    expect(slow.connections).toBe(1);
  });
});

describe('through a proxy', () => {
  interface TestProxy {
    url: URL;
    /** The targets of CONNECT, with the credentials. */
    asked: [target: string | undefined, authorization: string | undefined][];
  }

  /** A proxy that connects to this machine on the asked port. */
  async function startProxy(refuses = false): Promise<TestProxy> {
    const asked: TestProxy['asked'] = [];
    const server = createServer();
    server.on('connect', (request: IncomingMessage, client: Socket) => {
      client.on('error', () => undefined);
      asked.push([request.url, request.headers['proxy-authorization']]);
      if (refuses) return client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
      const upstream = connect(Number(/\d+$/.exec(request.url ?? '')![0]), '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        upstream.pipe(client).pipe(upstream);
      });
      upstream.on('error', () => client.destroy());
      client.on('close', () => upstream.destroy());
      stopAtEnd(async () => upstream.destroy());
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    stopAtEnd(async () => server.close());
    const { port } = server.address() as { port: number };
    return { url: new URL(`http://user:p%40ss@127.0.0.1:${port}`), asked };
  }
  const proxied = (
    { url }: Pick<TestProxy, 'url'>,
    resolves: boolean,
    more: Partial<SendDeps> = {},
  ): Partial<SendDeps> => {
    const own = new PinnedAgents({ tunnel: { proxy: { url, resolves }, deadlineMs: 5000 } });
    stopAtEnd(() => own.close());
    return { agents: own, certificateAuthority: certificates.authority, ...more };
  };

  test('goes to the address that was judged here, over TLS for the name of the receiver, on one connection', async () => {
    const proxy = await startProxy();
    const receiver = await startReceiver(undefined, certificates.good);
    const more = proxied(proxy, false);
    for (let n = 0; n < 2; n += 1) {
      expect(await attempt(`https://receiver.test:${receiver.port}/`, more)).toMatchObject({
        outcome: 'success',
        address: '127.0.0.1',
        timings: n === 0 ? { connectMs: expect.any(Number), tlsMs: expect.any(Number) } : { connectMs: null },
      });
    }
    const authorization = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
    expect(proxy.asked).toEqual([[`127.0.0.1:${receiver.port}`, authorization]]);
    expect(receiver.requests).toHaveLength(2);
    expect(receiver.requests[0]!.headers).not.toHaveProperty('proxy-authorization');
  });

  test('does not ask the proxy for an address that is not public, with either setting', async () => {
    const proxy = await startProxy();
    const inside = { resolver: names({ 'inside.test': ['10.0.0.1'] }) };
    const blocked = { outcome: 'blocked', address: null };
    expect(await attempt('https://inside.test/', proxied(proxy, false, inside))).toMatchObject(blocked);
    expect(await attempt('https://10.0.0.1/', proxied(proxy, true))).toMatchObject({ outcome: 'blocked' });
    expect(proxy.asked).toEqual([]);
  });

  test('leaves names to the proxy if it resolves them, and shows no address', async () => {
    const proxy = await startProxy();
    const receiver = await startReceiver(undefined, certificates.good);
    const resolver = names();
    const answer = await attempt(`https://receiver.test:${receiver.port}/`, proxied(proxy, true, { resolver }));
    expect(answer).toMatchObject({ outcome: 'success', address: null, timings: { dnsMs: null } });
    expect([resolver.asked, proxy.asked[0]![0]]).toEqual([[], `receiver.test:${receiver.port}`]);
  });

  test('fails with the stage and the cause', async () => {
    const wrong = await startReceiver(undefined, certificates.wrongName);
    const proxy = await startProxy();
    expect(await attempt(`https://receiver.test:${wrong.port}/`, proxied(proxy, false))).toMatchObject({
      outcome: 'tls',
      errorCode: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    expect(wrong.requests).toHaveLength(0);
    expect(await attempt('https://receiver.test/', proxied(await startProxy(true), false))).toMatchObject({
      outcome: 'connect',
      errorCode: 'PROXY_REFUSED',
    });
    const nowhere = { url: new URL('http://127.0.0.1:1') };
    expect(await attempt('https://receiver.test/', proxied(nowhere, false))).toMatchObject({
      outcome: 'connect',
      errorCode: 'PROXY_UNREACHABLE',
    });
    const silent = await startTarPit();
    const pit = proxied({ url: new URL(`http://127.0.0.1:${silent.port}`) }, false, HASTY);
    expect(await attempt('https://receiver.test/', pit)).toMatchObject({
      outcome: 'timeout',
      errorCode: 'CONNECT_TIMEOUT',
    });
  });
});
