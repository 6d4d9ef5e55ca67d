import {
  SERVER_MESSAGES,
  SERVER_MESSAGES_V2,
  SUBPROTOCOLS,
  type AnyServerMessage,
  type ClientMessageV2,
  type CloseReason,
  type ProtocolVersion,
  type ServerMessages as ServerMessagesV1,
  type ServerMessagesV2,
} from '@callplane/protocol';
import { stopAtEnd } from '@callplane/testing';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { WebSocket } from 'ws';

const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, validateSchema: false, meta: false });
const compileAll = (messages: Record<string, object>) =>
  new Map(Object.entries(messages).map(([type, schema]) => [type, ajv.compile(schema)]));
const VALIDATORS = { 1: compileAll(SERVER_MESSAGES), 2: compileAll(SERVER_MESSAGES_V2) };

/** The messages of both versions. */
export type ServerMessages = ServerMessagesV1 &
  Omit<ServerMessagesV2, keyof ServerMessagesV1> & { welcome: Pick<ServerMessagesV2['welcome'], 'roster'> };
export type ServerMessage = AnyServerMessage;
type ClientMessage = ClientMessageV2;
type Type = keyof ServerMessages;

/** Far beyond what any answer takes, because a green run does not wait for it. */
const WITHIN_MS = 60_000;

/** A client of the gateway that keeps every message. The test fails if one does not match the protocol's schemas. */
export interface TestClient {
  readonly socket: WebSocket;
  readonly messages: ServerMessage[];
  /** Close code and reason text; null while the connection is open. */
  readonly closed: { code: number; reason: string } | null;
  send(message: ClientMessage | object): void;
  raw(data: string | Buffer): void;
  /** Sends the message with an id and resolves to the answer. */
  request(message: ClientMessage | object): Promise<ServerMessage>;
  /** Like {@link request}, but throws unless the answer has this type. */
  ask<T extends Type>(message: ClientMessage | object, type: T): Promise<ServerMessages[T]>;
  of<T extends Type>(type: T): ServerMessages[T][];
  /** Resolves to the first message of this type that fits, including earlier messages. */
  until<T extends Type>(
    type: T,
    fits?: (message: ServerMessages[T]) => boolean,
    timeoutMs?: number,
  ): Promise<ServerMessages[T]>;
  /**
   * Resolves when the connection is closed. Throws unless both the `closing` message and the close frame give `reason`.
   */
  untilClosed(reason?: CloseReason, timeoutMs?: number): Promise<ServerMessages['closing'] | undefined>;
  on(listener: (message: ServerMessage) => void): void;
  /** Like `on`, but starts with the messages received so far. */
  all(listener: (message: ServerMessage) => void): void;
  /** Ends the connection without a close frame, like a broken network. */
  terminate(): void;
  /** Ends the session and the connection. No listener is called any more. */
  leave(): void;
}

export async function connectClient(
  url: string,
  { protocol = 1, headers = {} }: { protocol?: ProtocolVersion; headers?: Record<string, string> } = {},
): Promise<TestClient> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/signaling`, SUBPROTOCOLS[protocol], {
    headers,
    perMessageDeflate: false,
  });
  const messages: ServerMessage[] = [];
  const listeners: ((message: ServerMessage) => void)[] = [];
  const invalid: string[] = [];
  /** Called after each message, and when the connection is closed. */
  const checks = new Set<() => void>();
  const changed = () => {
    for (const check of [...checks]) check();
  };
  let closed: { code: number; reason: string } | null = null;
  let requests = 0;
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as ServerMessage;
    const validate = VALIDATORS[protocol].get(message.type);
    if (validate === undefined || !validate(message)) {
      invalid.push(`${message.type}: ${JSON.stringify(validate?.errors)}`);
    }
    messages.push(message);
    for (const listener of listeners) listener(message);
    changed();
  });
  socket.on('close', (code, reason) => {
    closed = { code, reason: reason.toString() };
    changed();
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

  /** Resolves once `find` finds something. Gives up when the connection is closed, because no message can follow. */
  const untilFound = <T>(what: string, timeoutMs: number, find: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const settle = (outcome: () => void) => {
        clearTimeout(timer);
        checks.delete(check);
        outcome();
      };
      const giveUp = (why: string) => {
        const last = JSON.stringify(messages.at(-1) ?? 'nothing').slice(0, 300);
        settle(() => reject(new Error(`${why}; last message: ${last}`)));
      };
      const check = () => {
        try {
          const found = find();
          if (found !== undefined) settle(() => resolve(found));
          else if (closed !== null) giveUp(`closed before ${what}: ${JSON.stringify(closed)}`);
        } catch (error) {
          settle(() => reject(error instanceof Error ? error : new Error(String(error))));
        }
      };
      const timer = setTimeout(() => giveUp(`not received within ${timeoutMs} ms: ${what}`), timeoutMs);
      checks.add(check);
      check();
    });

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
      return untilFound(`an answer to ${JSON.stringify(message).slice(0, 100)}`, WITHIN_MS, () =>
        messages.find((one) => 'replyTo' in one && one.replyTo === id),
      );
    },
    async ask(message, type) {
      const answer = await client.request(message);
      if (answer.type !== type) throw new Error(`answered ${JSON.stringify(answer)} instead of ${type}`);
      return answer as ServerMessages[typeof type];
    },
    of: (type) => messages.filter((message) => message.type === type) as ServerMessages[typeof type][],
    until: (type, fits = () => true, timeoutMs = WITHIN_MS) =>
      untilFound(`a ${type}`, timeoutMs, () => client.of(type).find(fits)),
    async untilClosed(reason, timeoutMs = WITHIN_MS) {
      await untilFound('the end of the connection', timeoutMs, () => closed ?? undefined);
      const closing = client.of('closing').at(-1);
      if (reason !== undefined && (closing?.reason !== reason || closed?.reason !== reason)) {
        throw new Error(`closed with ${JSON.stringify({ closed, closing })} instead of ${reason}`);
      }
      return closing;
    },
    on: (listener) => void listeners.push(listener),
    all: (listener) => {
      for (const message of messages) listener(message);
      listeners.push(listener);
    },
    terminate: () => socket.terminate(),
    leave: () => {
      listeners.length = 0;
      if (socket.readyState === WebSocket.OPEN) client.send({ type: 'leave' });
      socket.terminate();
    },
  };
  return client;
}
