import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { running, type SimProcess } from '../processes.js';
import type { World } from '../world.js';

export type Message = Record<string, unknown> & { type: string };

export interface SocketClient {
  received(message: Message): void;
  closed(): void;
}

const [OPEN, CLOSING, CLOSED] = [1, 2, 3];
const TRAVEL_MS = 1;

/**
 * A WebSocket between a client and a gateway: the gateway's end, as `ws` and the stream below offer it. Each frame is a
 * step. Frames arrive in order. A process that dies closes its sockets.
 */
export class SimSocket extends EventEmitter {
  readyState = OPEN;
  readonly #world: World;
  readonly #process: SimProcess;
  readonly #client: SocketClient;
  readonly #toGateway: string[] = [];
  readonly #toClient: Message[] = [];
  /** The stream below the WebSocket: the gateway's bytes leave at once. */
  readonly #stream = Object.assign(new EventEmitter(), {
    writableLength: 0,
    write: (bytes: Buffer, sent: () => void) => {
      for (const text of textsOf(bytes)) this.#sendToClient(JSON.parse(text) as Message);
      this.#world.soon(this.#process, sent);
      return true;
    },
  });
  #isToldClosed = false;

  constructor(world: World, process: SimProcess, client: SocketClient) {
    super();
    this.#world = world;
    this.#process = process;
    this.#client = client;
    process.onDeath.push(() => this.#tellClient());
  }

  /** The two objects that `Connections` takes. */
  get sockets(): { webSocket: WebSocket; socket: Duplex } {
    return { webSocket: this as unknown as WebSocket, socket: this.#stream as unknown as Duplex };
  }

  /** A frame of the client. */
  send(message: object): void {
    this.#toGateway.push(JSON.stringify(message));
    this.#atGateway('gets a frame', () => {
      const text = this.#toGateway.shift();
      if (text !== undefined && this.readyState === OPEN) this.emit('message', Buffer.from(text), false);
    });
  }

  /** The network of the client fails. The gateway learns it at once. */
  break(): void {
    this.#isToldClosed = true;
    this.#atGateway('loses a socket', () => this.#close(1006));
  }

  ping(): void {
    this.#world.after(TRAVEL_MS, null, 'a client answers a ping', () => {
      if (!this.#isToldClosed) this.#atGateway('gets a pong', () => this.emit('pong'));
    });
  }

  close(code: number): void {
    if (this.readyState !== OPEN) return;
    this.readyState = CLOSING;
    this.#atGateway('has closed a socket', () => this.#close(code));
  }

  terminate(): void {
    this.#world.soon(this.#process, () => this.#close(1006));
  }

  #close(code: number): void {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.#stream.emit('close');
    this.emit('close', code);
    this.#tellClient();
  }

  #sendToClient(message: Message): void {
    this.#toClient.push(message);
    this.#world.after(TRAVEL_MS, null, `a client gets ${message.type}`, () => {
      const next = this.#toClient.shift();
      if (next !== undefined && !this.#isToldClosed) this.#client.received(next);
    });
  }

  /** After the frames that are on their way. */
  #tellClient(): void {
    this.#world.after(2 * TRAVEL_MS, null, 'a client sees its socket close', () => {
      if (this.#isToldClosed) return;
      this.#isToldClosed = true;
      for (const message of this.#toClient.splice(0)) this.#client.received(message);
      this.#client.closed();
    });
  }

  #atGateway(label: string, run: () => void): void {
    const process = this.#process;
    if (!process.isAlive) return;
    this.#world.after(TRAVEL_MS, process, label, () => running.run(process, run));
  }
}

/** The texts of frames of a server (RFC 6455, section 5.2): whole, unmasked text frames. */
function textsOf(bytes: Buffer): string[] {
  const texts: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const short = bytes.readUInt8(at + 1);
    at += 2;
    let length = short;
    if (short === 126) {
      length = bytes.readUInt16BE(at);
      at += 2;
    } else if (short === 127) {
      length = Number(bytes.readBigUInt64BE(at));
      at += 8;
    }
    texts.push(bytes.toString('utf8', at, at + length));
    at += length;
  }
  return texts;
}
