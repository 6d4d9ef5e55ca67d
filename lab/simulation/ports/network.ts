import { EventEmitter } from 'node:events';
import { running, type SimProcess } from '../processes.js';
import type { World } from '../world.js';

/** A request as it arrives at a receiver. */
export interface Arrived {
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Reaction =
  | { do: 'answer'; status: number; afterMs: number }
  /** Never answers. */
  | { do: 'hang' }
  /** Breaks the connection after it has read the request. */
  | { do: 'break'; afterMs: number };

export interface Receivers {
  /** False refuses the connection. */
  accepts(host: string): boolean;
  receive(arrived: Arrived): Reaction;
  /** The request is over at the receiver, too. */
  ended(arrived: Arrived): void;
}

let network: { world: World; receivers: Receivers } | undefined;
export function useNetwork(world: World, receivers: Receivers): void {
  network = { world, receivers };
}

/** Takes the place of a request of `got`. */
class SimRequest extends EventEmitter {
  destroyed = false;
  readonly #onDestroyed: () => void;

  constructor(onDestroyed: () => void) {
    super();
    this.#onDestroyed = onDestroyed;
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    this.destroyed = true;
    this.#onDestroyed();
    if (error !== undefined) this.emit('error', error);
    this.emit('close');
    return this;
  }
}

interface Options {
  headers: Record<string, string>;
  body: string;
}

function post(url: URL, { headers, body }: Options): SimRequest {
  const process = running.getStore();
  if (process === undefined || network === undefined) throw new Error('no simulated process runs');
  const { world, receivers } = network;
  const arrived: Arrived = { host: url.hostname, headers, body };
  let isThere = false;
  const request = new SimRequest(() => {
    if (isThere) receivers.ended(arrived);
    isThere = false;
  });
  process.onDeath.push(() => {
    if (isThere) receivers.ended(arrived);
  });
  const step = (ms: number, what: string, run: () => void): void => {
    world.after(ms, process, `${what} ${url.hostname}`, () => {
      if (!request.destroyed) running.run(process, run);
    });
  };
  const fail = (code: string): void => {
    request.emit('error', Object.assign(new Error(code), { code }));
    request.destroy();
  };
  step(1, 'connects to', () => {
    const socket = Object.assign(new EventEmitter(), { connecting: true });
    const client = new EventEmitter();
    request.emit('request', client);
    client.emit('socket', socket);
    if (!receivers.accepts(url.hostname)) {
      fail('ECONNREFUSED');
      return;
    }
    socket.emit('connect');
    if (url.protocol === 'https:') socket.emit('secureConnect');
    client.emit('finish');
    send(world, receivers, process, { arrived, client, request, step, fail, onThere: () => (isThere = true) });
  });
  return request;
}

interface Sending {
  arrived: Arrived;
  client: EventEmitter;
  request: SimRequest;
  step(ms: number, what: string, run: () => void): void;
  fail(code: string): void;
  onThere(): void;
}

function send(world: World, receivers: Receivers, process: SimProcess, sending: Sending): void {
  const { arrived, client, request, step, fail } = sending;
  // From here on the request reaches its receiver even if the worker dies.
  world.after(1, null, `a request of ${process.name} reaches ${arrived.host}`, () => {
    const reaction = receivers.receive(arrived);
    if (request.destroyed || !process.isAlive) receivers.ended(arrived);
    else sending.onThere();
    if (reaction.do === 'hang') return;
    if (reaction.do === 'break') {
      step(reaction.afterMs, 'loses the connection to', () => fail('ECONNRESET'));
      return;
    }
    step(reaction.afterMs, `gets ${reaction.status} of`, () => {
      client.emit('response');
      request.emit('response', { statusCode: reaction.status, headers: { server: 'simulated' } });
      step(1, 'reads the body of', () => {
        receivers.ended(arrived);
        request.emit('data', Buffer.from('ok'));
        request.emit('end');
      });
    });
  });
}

const got = { extend: () => ({ stream: { post } }) };
export default got;
