import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { stopAtEnd } from './resources.js';

interface Listening {
  port: number;
  /** `http://<host>:<port>` */
  origin: string;
  /** Ends the present connections. */
  cut(): void;
  /** Ends the connections and the server. Idempotent; called at the end of the test file. */
  close(): Promise<void>;
}

/** Lets a server of any kind listen on a free port until the test file ends. */
export async function listenUntilEnd(server: Server, host = '127.0.0.1'): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    cut();
    await closed;
  };
  stopAtEnd(close);
  return { port, origin: `http://${host}:${port}`, cut, close };
}

/** A proxy between a client and servers: a load balancer, or a network that a test can interrupt. */
interface TcpProxy {
  readonly port: number;
  /** Destroys every connection and refuses new ones until `restore`. */
  cut(): void;
  restore(): void;
}

interface Target {
  host: string;
  port: number;
}

/**
 * Forwards each connection to the first target that accepts it, beginning with the next one in rotation.
 * @param targets may change; a connection stays with its target.
 */
export async function startTcpProxy(targets: readonly Target[], host?: string): Promise<TcpProxy> {
  let isCut = false;
  let turn = 0;
  const forward = (client: Socket, [target, ...others]: readonly Target[]) => {
    if (target === undefined || isCut) {
      client.destroy();
      return;
    }
    const server = connect(target);
    let isThrough = false;
    server.on('error', () => server.destroy());
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
  const proxy = createServer((client) => {
    client.on('error', () => client.destroy());
    const first = turn++ % targets.length;
    forward(client, [...targets.slice(first), ...targets.slice(0, first)]);
  });
  const { port, cut } = await listenUntilEnd(proxy, host);
  return {
    port,
    cut: () => {
      isCut = true;
      cut();
    },
    restore: () => {
      isCut = false;
    },
  };
}

/** Sends raw bytes to the host and port of a URL, and reads until the server ends the connection. */
export function rawExchange(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.on('end', () => resolve(text));
    // A server that has not read everything resets the connection after its answer.
    socket.on('error', (error) => (text === '' ? reject(error) : resolve(text)));
  });
}

/** The UDP ports that a process has bound. */
export function udpPortsOf(pid: number): number[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        // The process has closed it meanwhile.
        return [];
      }
    }),
  );
  return ['udp', 'udp6']
    .flatMap((table) => readFileSync(`/proc/${pid}/net/${table}`, 'utf8').trim().split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , , , , , , , inode = '']) => sockets.has(inode))
    .map(([, local = '']) => Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16));
}
