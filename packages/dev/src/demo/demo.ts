import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { demoPages, createDemoDoor, type PagesSettings } from './pages.js';

export interface DemoSettings extends PagesSettings {
  /** 0 picks a free port. */
  port: number;
  host: string;
  /** Origin of a gateway, to which the page's WebSockets go. */
  gatewayUrl: string;
  /** Host names, besides loopback, under which browsers may open the page, e.g. behind a TLS proxy. */
  hosts: readonly string[];
}

export interface Demo {
  url: string;
  close(): Promise<void>;
}

/**
 * Serves the page for calls under `/demo`, with a small backend, because a browser must never hold an API key. Every
 * client that can reach it may join any of its rooms. The page's WebSockets pass through to the gateway, so that one TLS
 * proxy in front is enough.
 */
export async function startDemo(settings: DemoSettings): Promise<Demo> {
  const door = createDemoDoor({ listensOn: settings.host, names: settings.hosts });
  const server = createServer(demoPages(settings, door));
  const sockets = new Set<Duplex>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('upgrade', (request, socket, head) => {
    if (door.knowsHost(request)) passOn(request, socket, head, new URL(settings.gatewayUrl));
    else socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(settings.port, settings.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Repeats the request of an upgrade at the gateway, and passes on all that follows. */
function passOn(request: IncomingMessage, socket: Duplex, head: Buffer, gatewayUrl: URL): void {
  const { method = 'GET', rawHeaders, url = '/' } = request;
  const headers = rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
  const gateway: Socket = connect(Number(gatewayUrl.port), gatewayUrl.hostname.replaceAll(/[[\]]/g, ''), () => {
    gateway.write(`${method} ${url} HTTP/1.1\r\n${headers}\r\n`);
    gateway.write(head);
    socket.pipe(gateway).pipe(socket);
  });
  socket.on('error', () => gateway.destroy()).on('close', () => gateway.destroy());
  gateway.on('error', () => socket.destroy()).on('close', () => socket.destroy());
}
