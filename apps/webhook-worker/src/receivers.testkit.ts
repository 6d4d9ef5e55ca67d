import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TlsOptions } from 'node:tls';
import { stopAtEnd, temporaryDirectory } from '@callplane/testing';

interface ReceivedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  at: number;
}

/** A real receiver on its own port. It is closed when the test file ends. */
export interface Receiver {
  url: string;
  port: number;
  requests: ReceivedRequest[];
  /** Number of connections accepted so far. */
  connections: number;
  /** Connections that are open now. */
  open: Set<Socket>;
  close(): Promise<void>;
}

export type Handler = (request: IncomingMessage, response: ServerResponse, received: ReceivedRequest) => void;

/** Starts a receiver that answers every request with `handle`, by default with 200 and an empty body. */
export async function startReceiver(
  handle: Handler = (_request, response) => response.end(),
  tls?: TlsOptions,
): Promise<Receiver> {
  const receiver = blank();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const received = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks),
        at: performance.now(),
      };
      receiver.requests.push(received);
      handle(request, response, received);
    });
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  return listen(receiver, server, tls === undefined ? 'http' : 'https');
}

/** Starts a raw TCP receiver. It calls `handle` when the first bytes of a request have arrived. */
export function startTcpReceiver(handle: (socket: Socket) => void): Promise<Receiver> {
  const receiver = blank();
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (data: Buffer) => {
      receiver.requests.push({ method: '', path: '', headers: {}, body: data, at: performance.now() });
      handle(socket);
    });
  });
  return listen(receiver, server, 'http');
}

/** Starts a receiver that accepts connections and never answers. */
export const startTarPit = (): Promise<Receiver> => startTcpReceiver(() => undefined);

function blank(): Receiver {
  return { url: '', port: 0, requests: [], connections: 0, open: new Set(), close: () => Promise.resolve() };
}

async function listen(receiver: Receiver, server: Server, scheme: string): Promise<Receiver> {
  server.on('connection', (socket: Socket) => {
    receiver.connections += 1;
    receiver.open.add(socket);
    socket.once('close', () => receiver.open.delete(socket));
    socket.on('error', () => undefined);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  receiver.port = (server.address() as AddressInfo).port;
  receiver.url = `${scheme}://127.0.0.1:${receiver.port}/hook`;
  receiver.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of receiver.open) socket.destroy();
    });
  stopAtEnd(() => receiver.close());
  return receiver;
}

export interface Certificates {
  authority: string;
  /** For `receiver.test` and 127.0.0.1. */
  good: { key: string; cert: string };
  /** For `other.test`. */
  wrongName: { key: string; cert: string };
  expired: { key: string; cert: string };
  notYetValid: { key: string; cert: string };
  selfSigned: { key: string; cert: string };
}

/** Creates certificates with the `openssl` command, which the tests require. */
export function makeCertificates(): Certificates {
  const directory = temporaryDirectory('certificates');
  const file = (name: string): string => join(directory, name);
  const openssl = (...options: string[]): unknown => execFileSync('openssl', options, { stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const selfSigned = (name: string, subject: string): void =>
    void openssl(
      ...['req', '-x509', ...newKey, '-keyout', file(`${name}.key`), '-out', file(`${name}.pem`)],
      ...['-subj', subject, '-days', '30'],
    );
  selfSigned('authority', '/CN=Test authority');
  selfSigned('self', '/CN=receiver.test');
  const request = (name: string, names: string): unknown =>
    openssl(
      ...['req', ...newKey, '-keyout', file(`${name}.key`), '-out', file(`${name}.csr`), '-subj', `/CN=${name}`],
      ...['-addext', `subjectAltName=${names}`],
    );
  const issue = (name: string, names: string): { key: string; cert: string } => {
    request(name, names);
    openssl(
      ...['x509', '-req', '-in', file(`${name}.csr`), '-CA', file('authority.pem'), '-CAkey', file('authority.key')],
      ...['-CAcreateserial', '-copy_extensions', 'copy', '-out', file(`${name}.pem`), '-days', '30'],
    );
    return pair(name);
  };
  /** In every version, only `openssl ca` issues certificates for other times, and it wants a configuration. */
  const issueFor = (start: string, end: string, name: string, names: string): { key: string; cert: string } => {
    request(name, names);
    writeFileSync(file('index.txt'), '');
    const ca = `database=${file('index.txt')}\nnew_certs_dir=${directory}\npolicy=any\nrand_serial=yes\n`;
    writeFileSync(
      file('ca.cnf'),
      `[ca]\ndefault_ca=own\n[own]\n${ca}copy_extensions=copy\n[any]\ncommonName=supplied\n`,
    );
    openssl(
      ...['ca', '-batch', '-notext', '-config', file('ca.cnf'), '-md', 'sha256', '-in', file(`${name}.csr`)],
      ...['-cert', file('authority.pem'), '-keyfile', file('authority.key'), '-out', file(`${name}.pem`)],
      ...['-startdate', start, '-enddate', end],
    );
    return pair(name);
  };
  const pair = (name: string): { key: string; cert: string } => ({
    key: readFileSync(file(`${name}.key`), 'utf8'),
    cert: readFileSync(file(`${name}.pem`), 'utf8'),
  });
  return {
    authority: readFileSync(file('authority.pem'), 'utf8'),
    good: issue('good', 'DNS:receiver.test,IP:127.0.0.1'),
    wrongName: issue('wrong', 'DNS:other.test'),
    expired: issueFor('20200101000000Z', '20210101000000Z', 'expired', 'DNS:receiver.test,IP:127.0.0.1'),
    notYetValid: issueFor('20800101000000Z', '20810101000000Z', 'later', 'DNS:receiver.test,IP:127.0.0.1'),
    selfSigned: pair('self'),
  };
}
