import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

interface Pair {
  near: Socket;
  far: Socket;
}

/** A TCP proxy on 127.0.0.1 that can be cut: its connections stay open then, and carry nothing. */
export class Cable {
  readonly port: number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isCut = false;

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  /** @param to a port of 127.0.0.1. */
  static async open(to: number): Promise<Cable> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const cable = new Cable(server);
    server.on('connection', (near) => cable.#join(near, to));
    return cable;
  }

  cut(): void {
    this.#isCut = true;
    for (const { near, far } of this.#pairs) {
      near.unpipe(far).pause();
      far.unpipe(near).pause();
    }
  }

  heal(): void {
    this.#isCut = false;
    for (const pair of this.#pairs) carry(pair);
  }

  close(): void {
    this.#server.close();
    for (const pair of this.#pairs) end(pair);
  }

  #join(near: Socket, to: number): void {
    const far = connect({ host: '127.0.0.1', port: to, allowHalfOpen: true, noDelay: true });
    far.pause();
    const pair = { near, far };
    this.#pairs.add(pair);
    const ended = (): void => {
      this.#pairs.delete(pair);
      end(pair);
    };
    for (const socket of [near, far]) socket.on('error', () => undefined).once('close', ended);
    if (!this.#isCut) carry(pair);
  }
}

function end({ near, far }: Pair): void {
  near.destroy();
  far.destroy();
}

function carry({ near, far }: Pair): void {
  near.pipe(far);
  far.pipe(near);
}
