import {
  SERVER_MESSAGES,
  SUBPROTOCOL,
  type Change,
  type ClientMessage,
  type CloseReason,
  type RemoteParticipant,
  type ServerMessage,
  type ServerMessages,
} from '@callplane/protocol';
import { stopAtEnd } from '@callplane/testing';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { WebSocket } from 'ws';

const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, validateSchema: false, meta: false });
const VALIDATORS = new Map<string, ReturnType<typeof ajv.compile>>(
  Object.entries(SERVER_MESSAGES).map(([type, schema]) => [type, ajv.compile(schema)]),
);
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
  /** The entries of all `changes` about other participants. */
  readonly changes: Change[];
  /** The other participants that the client knows from its latest roster and the changes since. */
  readonly others: ReadonlyMap<string, RemoteParticipant>;
  /** Resolves once the client knows others that fit. */
  untilOthers(fits: (others: ReadonlyMap<string, RemoteParticipant>) => boolean): Promise<void>;
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

export async function connectClient(url: string, headers: Record<string, string> = {}): Promise<TestClient> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/signaling`, SUBPROTOCOL, {
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
    const validate = VALIDATORS.get(message.type);
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
    get changes() {
      const own = client.of('welcome')[0]?.participant.participantId;
      return client.of('changes').flatMap(({ changes }) => changes.filter((change) => idOf(change) !== own));
    },
    get others() {
      return othersOf(messages);
    },
    async untilOthers(fits) {
      await untilFound('the others', WITHIN_MS, () => (fits(client.others) ? true : undefined));
    },
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

function idOf(change: Change): string {
  return change.kind === 'participant' ? change.participant.participantId : change.participantId;
}

/** Follows the messages as a client does. */
function othersOf(messages: readonly ServerMessage[]): Map<string, RemoteParticipant> {
  let others = new Map<string, RemoteParticipant>();
  let own: string | undefined;
  for (const message of messages) {
    if (message.type === 'welcome') own = message.participant.participantId;
    if (message.type === 'welcome' || message.type === 'rosterPaged') {
      others = new Map(message.participants.map((one) => [one.participantId, one]));
    }
    for (const change of message.type === 'changes' ? message.changes : []) {
      const known = others.get(idOf(change));
      if (change.kind === 'participant') others.set(idOf(change), change.participant);
      else if (change.kind !== 'tracks') others.delete(idOf(change));
      else if (known !== undefined) others.set(idOf(change), { ...known, tracks: change.tracks });
    }
  }
  if (own !== undefined) others.delete(own);
  return others;
}
