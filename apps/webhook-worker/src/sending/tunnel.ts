import http, { type IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import tls, { type ConnectionOptions } from 'node:tls';

/** The HTTP proxy through which all deliveries leave. */
export interface Proxy {
  url: URL;
  /** The proxy resolves host names and has to refuse addresses that are not public. Otherwise it gets judged addresses. */
  resolves: boolean;
}

type Stage = 'connect' | 'tls';

/** A connection that was not made, with the stage in which it failed. */
export class TunnelFailure extends Error {
  constructor(
    readonly stage: Stage,
    readonly code: string,
    cause?: unknown,
  ) {
    super(`no connection through the proxy: ${code}`, { cause });
  }
}

/** How long the connections through the proxy have taken, in milliseconds. */
export const tunnelTimings = new WeakMap<Socket, { connectMs: number; tlsMs: number | null }>();

interface Destination {
  /** An address, or a name that the proxy resolves. */
  host: string;
  port: number;
  /** Null for `http`. */
  tls: ConnectionOptions | null;
}

/** Answers the size of its refusal at most: such a proxy may send a page. */
const HEAD_BYTES_MAX = 16 * 1024;

/**
 * Connects through a proxy with CONNECT. The TLS of the receiver is checked for its own name inside of the tunnel, so
 * the proxy sees no request.
 * @throws TunnelFailure
 */
export async function openTunnel({ url }: Proxy, destination: Destination, deadlineMs: number): Promise<Socket> {
  const startedAt = performance.now();
  const deadline = AbortSignal.timeout(deadlineMs);
  const socket = await connectThrough(url, destination, deadline);
  const connectMs = performance.now() - startedAt;
  const secured = destination.tls === null ? null : await secure(socket, destination.tls, deadline);
  const tlsMs = secured === null ? null : performance.now() - startedAt - connectMs;
  const result = secured ?? socket;
  tunnelTimings.set(result, { connectMs, tlsMs });
  return result;
}

function connectThrough(proxy: URL, { host, port }: Destination, signal: AbortSignal): Promise<Socket> {
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  return new Promise((resolve, reject) => {
    const request = http.request({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port === '' ? 80 : Number(proxy.port),
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...(proxy.username === '' ? {} : { 'proxy-authorization': authorization }) },
      agent: false,
      maxHeaderSize: HEAD_BYTES_MAX,
      signal,
    });
    request.once('connect', (response: IncomingMessage, socket: Socket, head: Buffer) => {
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode < 300 && head.length === 0) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(new TunnelFailure('connect', 'PROXY_REFUSED'));
    });
    // A proxy that answers CONNECT with a page.
    request.once('response', (response) => {
      response.destroy();
      reject(new TunnelFailure('connect', 'PROXY_REFUSED'));
    });
    request.once('error', (error) => reject(new TunnelFailure('connect', 'PROXY_UNREACHABLE', error)));
    request.end();
  });
}

function secure(socket: Socket, options: ConnectionOptions, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const secured = tls.connect({ ...options, socket });
    const abort = () => secured.destroy(new Error('the deadline has passed'));
    signal.addEventListener('abort', abort);
    const fail = (error: NodeJS.ErrnoException) => {
      secured.destroy();
      reject(new TunnelFailure('tls', error.code ?? 'TLS_FAILED', error));
    };
    const onClose = () => fail(Object.assign(new Error('closed'), { code: 'ECONNRESET' }));
    secured.once('error', fail).once('close', onClose);
    secured.once('secureConnect', () => {
      signal.removeEventListener('abort', abort);
      secured.off('error', fail).off('close', onClose);
      resolve(secured);
    });
  });
}
