import { createSocket, type Socket } from 'node:dgram';
import { ShapedLine, type LineShape } from './shaped-line.js';

/** A slow or lossy line between UDP clients and a server, such as browsers and their TURN server. */
export interface UdpShaper {
  readonly host: string;
  /** Clients send to this port instead of the server's. */
  readonly port: number;
  /** From now on; a direction that is left out stays as it is. All clients share the line. */
  shape(shapes: { down?: LineShape; up?: LineShape }): void;
  /** Loses all packets of the present clients from now on, as if they had moved to another network. */
  loseClients(): void;
  /** Packets that the line has lost so far. */
  readonly lost: { down: number; up: number };
  close(): Promise<void>;
}

export interface UdpShaperOptions {
  /** The server, and the address to listen at. */
  host: string;
  port: number;
  seed?: number;
}

/** Clients at the same time. */
const CLIENTS_MAX = 100;

interface Waiting {
  dueAtMs: number;
  deliver: () => void;
}

export async function startUdpShaper({ host, port, seed = 1 }: UdpShaperOptions): Promise<UdpShaper> {
  const down = new Direction(seed);
  const up = new Direction(seed + 1);
  const front = createSocket('udp4');
  /** The server's view of each client: a socket, and so an address, of its own. */
  const servers = new Map<string, Socket>();
  const gone = new Set<Socket>();
  const serverFor = (address: string, clientPort: number): Socket | undefined => {
    const client = `${address}:${clientPort}`;
    const known = servers.get(client);
    if (known !== undefined) return known;
    if (servers.size >= CLIENTS_MAX) return undefined;
    const socket = createSocket('udp4');
    socket.on('message', (data) => {
      if (!gone.has(socket)) down.send(data, () => front.send(data, clientPort, address, ignore));
    });
    socket.on('error', ignore);
    servers.set(client, socket);
    return socket;
  };
  front.on('error', ignore);
  front.on('message', (data, client) => {
    const server = serverFor(client.address, client.port);
    if (server !== undefined && !gone.has(server)) up.send(data, () => server.send(data, port, host, ignore));
  });
  await new Promise<void>((resolve, reject) => {
    front.once('error', reject);
    front.bind(0, host, resolve);
  });
  let isClosed = false;
  return {
    host,
    port: front.address().port,
    shape: (shapes) => {
      if (shapes.down !== undefined) down.line.shape = shapes.down;
      if (shapes.up !== undefined) up.line.shape = shapes.up;
    },
    loseClients: () => {
      for (const socket of servers.values()) gone.add(socket);
    },
    get lost() {
      return { down: down.lost, up: up.lost };
    },
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      for (const direction of [down, up]) direction.close();
      const sockets = [front, ...servers.values()];
      await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))));
    },
  };
}

/** Delivers packets in order, each when the line has carried it. */
class Direction {
  readonly line: ShapedLine;
  lost = 0;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(seed: number) {
    this.line = new ShapedLine(seed);
  }

  send(data: Buffer, deliver: () => void): void {
    const dueAtMs = this.line.admit(performance.now(), data.length);
    if (this.#isClosed) return;
    if (dueAtMs === undefined) {
      this.lost += 1;
      return;
    }
    this.#waiting.push({ dueAtMs, deliver });
    if (this.#waiting.length === 1) this.#next();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#waiting = [];
  }

  #next(): void {
    const nowMs = performance.now();
    while (this.#waiting[0] !== undefined && this.#waiting[0].dueAtMs <= nowMs) this.#waiting.shift()?.deliver();
    const [first] = this.#waiting;
    if (first !== undefined) this.#timer = setTimeout(() => this.#next(), first.dueAtMs - nowMs);
  }
}

/** A packet that cannot be sent is lost, as on any line. */
function ignore(): void {
  // As above.
}
