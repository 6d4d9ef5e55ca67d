import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { stopAtEnd } from '@callplane/testing';

/** A proxy between a client and servers: a load balancer, or a network that a test can interrupt. */
export interface TcpProxy {
  readonly port: number;
  /** Destroys every connection and refuses new ones until `restore`. */
  cut(): void;
  restore(): void;
}

interface Target {
  host: string;
  port: number;
}

/** Forwards each connection to the first target that accepts it, beginning with the next one in rotation. */
export async function startTcpProxy(targets: Target[], host = '127.0.0.1'): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  let turn = 0;
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  };
  const forward = (client: Socket, [target, ...others]: Target[]) => {
    if (target === undefined || isCut) {
      client.destroy();
      return;
    }
    const server = connect(target);
    keep(server);
    let isThrough = false;
    server.once('connect', () => {
      isThrough = true;
      client.pipe(server).pipe(client);
    });
    server.once('close', () => {
      if (isThrough) client.destroy();
      else forward(client, others);
    });
    client.once('close', () => server.destroy());
  };
  const server = createServer((client) => {
    keep(client);
    const first = turn++ % targets.length;
    forward(client, [...targets.slice(first), ...targets.slice(0, first)]);
  });
  server.listen(0, host);
  await once(server, 'listening');
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  stopAtEnd(async () => {
    cut();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    restore: () => {
      isCut = false;
    },
  };
}
