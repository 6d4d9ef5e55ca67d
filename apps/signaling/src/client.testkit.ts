import {
  SERVER_MESSAGES,
  SUBPROTOCOL,
  type ClientMessage,
  type CloseReason,
  type ServerMessage,
  type ServerMessages,
} from '@callplane/protocol';
import { eventually, stopAtEnd } from '@callplane/testing';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { WebSocket } from 'ws';

const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false });
const validators = new Map(Object.entries(SERVER_MESSAGES).map(([type, schema]) => [type, ajv.compile(schema)]));

type Type = ServerMessage['type'];

/** A client of the gateway that keeps all it is told; whatever it is told must match the protocol's schemas. */
export interface TestClient {
  readonly socket: WebSocket;
  readonly messages: ServerMessage[];
  /** Close code and reason text, once it is closed. */
  readonly closed: { code: number; reason: string } | null;
  send(message: ClientMessage | object): void;
  raw(data: string | Buffer): void;
  /** Sends with an id and resolves to the answer. */
  request(message: ClientMessage | object): Promise<ServerMessage>;
  /** Like {@link request}, and throws unless the answer is of that type. */
  ask<T extends Type>(message: ClientMessage | object, type: T): Promise<ServerMessages[T]>;
  of<T extends Type>(type: T): ServerMessages[T][];
  /** The first message of this type that fits, also one that came before. */
  until<T extends Type>(
    type: T,
    fits?: (message: ServerMessages[T]) => boolean,
    timeoutMs?: number,
  ): Promise<ServerMessages[T]>;
  /** Resolves when it is closed; throws unless the gateway told this reason, and closed with its code. */
  untilClosed(reason?: CloseReason, timeoutMs?: number): Promise<ServerMessages['closing'] | undefined>;
  on(listener: (message: ServerMessage) => void): void;
  /** What has come so far, too. */
  all(listener: (message: ServerMessage) => void): void;
  /** Without a close frame, as a network that is gone. */
  terminate(): void;
}

export async function connectClient(
  url: string,
  { protocol = SUBPROTOCOL, headers = {} }: { protocol?: string; headers?: Record<string, string> } = {},
): Promise<TestClient> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/signaling`, protocol === '' ? [] : [protocol], {
    headers,
    perMessageDeflate: false,
  });
  const messages: ServerMessage[] = [];
  const listeners: ((message: ServerMessage) => void)[] = [];
  const invalid: string[] = [];
  let closed: { code: number; reason: string } | null = null;
  let requests = 0;
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as ServerMessage;
    const validate = validators.get(message.type);
    if (validate === undefined || !validate(message)) {
      invalid.push(`${message.type}: ${JSON.stringify(validate?.errors)}`);
    }
    messages.push(message);
    for (const listener of listeners) listener(message);
  });
  socket.on('close', (code, reason) => {
    closed = { code, reason: reason.toString() };
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => undefined);
  stopAtEnd(() => {
    socket.terminate();
    return invalid.length === 0 ? Promise.resolve() : Promise.reject(new Error(invalid.join('\n')));
  });

  /** Gives up at once when the connection is closed: what has not come will not come. */
  const untilFound = async <T>(what: string, timeoutMs: number, find: () => T | undefined): Promise<T> => {
    const until = performance.now() + timeoutMs;
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      const last = JSON.stringify(messages.at(-1) ?? 'nothing').slice(0, 300);
      if (closed !== null) throw new Error(`closed before ${what}: ${JSON.stringify(closed)}; last came ${last}`);
      if (performance.now() > until) throw new Error(`not within ${timeoutMs} ms: ${what}; last came ${last}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };

  const client: TestClient = {
    socket,
    messages,
    get closed() {
      return closed;
    },
    send: (message) => socket.send(JSON.stringify(message)),
    raw: (data) => socket.send(data),
    request(message) {
      requests += 1;
      const id = `r${requests}`;
      client.send({ ...message, id });
      return untilFound(`an answer to ${JSON.stringify(message).slice(0, 100)}`, 10_000, () =>
        messages.find((one) => 'replyTo' in one && one.replyTo === id),
      );
    },
    async ask(message, type) {
      const answer = await client.request(message);
      if (answer.type !== type) throw new Error(`answered ${JSON.stringify(answer)} and not ${type}`);
      return answer as ServerMessages[typeof type];
    },
    of: (type) => messages.filter((message) => message.type === type) as ServerMessages[typeof type][],
    until: (type, fits = () => true, timeoutMs = 10_000) =>
      untilFound(`a ${type}`, timeoutMs, () => client.of(type).find(fits)),
    async untilClosed(reason, timeoutMs = 10_000) {
      await eventually(() => closed !== null, { timeoutMs, intervalMs: 2 });
      const closing = client.of('closing').at(-1);
      if (reason !== undefined && (closing?.reason !== reason || closed?.reason !== reason)) {
        throw new Error(`closed with ${JSON.stringify({ closed, closing })} and not ${reason}`);
      }
      return closing;
    },
    on: (listener) => void listeners.push(listener),
    all: (listener) => {
      for (const message of messages) listener(message);
      listeners.push(listener);
    },
    terminate: () => socket.terminate(),
  };
  return client;
}
