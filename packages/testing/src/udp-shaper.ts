import { createSocket, type Socket } from 'node:dgram';

/** How one direction of a line treats packets. */
interface LineShape {
  /** Undefined: unlimited. */
  kbitPerSecond?: number | undefined;
  /** Of all packets, at random; 100 cuts the line. */
  lossPercent?: number;
  /** Added to each packet's way. */
  delayMs?: number;
}

/** A slow or lossy line between UDP clients and a server, such as browsers and their TURN server. */
export interface UdpShaper {
  readonly host: string;
  /** Clients send to this port instead of the server's. */
  readonly port: number;
  /** From now on; a direction that is left out stays as it is. All clients share the line. */
  shape(shapes: { down?: LineShape; up?: LineShape }): void;
  /** Loses all packets of the present clients from now on, as if they had moved to another network. */
  loseClients(): void;
  close(): Promise<void>;
}

export interface UdpShaperOptions {
  /** The server, and the address to listen at. */
  host: string;
  port: number;
}

/** Packets that would wait longer for their turn are dropped. */
const QUEUE_MS = 300;
/** IPv4 and UDP headers. */
const HEADER_BYTES = 28;
/** Addresses of clients, lost ones included. */
const CLIENTS_MAX = 400;

interface Waiting {
  dueAtMs: number;
  deliver: () => void;
}

export async function startUdpShaper({ host, port }: UdpShaperOptions): Promise<UdpShaper> {
  const down = new Direction(1);
  const up = new Direction(2);
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
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(seed: number) {
    this.line = new ShapedLine(seed);
  }

  send(data: Buffer, deliver: () => void): void {
    const dueAtMs = this.line.admit(performance.now(), data.length);
    if (this.#isClosed || dueAtMs === undefined) return;
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

/** One direction of a line with a limited rate, a bounded queue, delay and loss. Without I/O. */
class ShapedLine {
  shape: LineShape = {};
  readonly #random: () => number;
  /** When the line has sent everything that waits. */
  #freeAtMs = -Infinity;
  #lastAtMs = -Infinity;

  /** @param seed the same seed loses the same packets */
  constructor(seed: number) {
    this.#random = randomFrom(seed);
  }

  /** @returns when the packet arrives at the other end; undefined if it is lost */
  admit(nowMs: number, payloadBytes: number): number | undefined {
    const { kbitPerSecond, lossPercent = 0, delayMs = 0 } = this.shape;
    if (this.#random() * 100 < lossPercent) return undefined;
    const beginsAtMs = kbitPerSecond === undefined ? nowMs : Math.max(nowMs, this.#freeAtMs);
    if (beginsAtMs - nowMs > QUEUE_MS) return undefined;
    if (kbitPerSecond !== undefined) this.#freeAtMs = beginsAtMs + (8 * (payloadBytes + HEADER_BYTES)) / kbitPerSecond;
    const sentAtMs = kbitPerSecond === undefined ? nowMs : this.#freeAtMs;
    // Packets stay in order when the shape changes.
    this.#lastAtMs = Math.max(this.#lastAtMs, sentAtMs + delayMs);
    return this.#lastAtMs;
  }
}

/** A generator of numbers from 0 to 1, without 1: the same seed gives the same numbers (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
