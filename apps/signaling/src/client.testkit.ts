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

/** Far beyond the time of any answer, because a green run does not wait for it. */
const WITHIN_MS = 60_000;

export type TestClient = Awaited<ReturnType<typeof connectClient>>;

/** A client of the gateway that keeps every message. The test fails if one does not match the protocol's schemas. */
export async function connectClient(url: string, headers: Record<string, string> = {}) {
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

  const send = (message: ClientMessage | object): void => socket.send(JSON.stringify(message));
  const of = <T extends Type>(type: T) => messages.filter((message) => message.type === type) as ServerMessages[T][];
  /** Sends the message with an id and resolves to the answer. */
  function request(message: ClientMessage | object): Promise<ServerMessage> {
    requests += 1;
    const id = `r${requests}`;
    send({ ...message, id });
    return untilFound(`an answer to ${JSON.stringify(message).slice(0, 100)}`, WITHIN_MS, () =>
      messages.find((one) => 'replyTo' in one && one.replyTo === id),
    );
  }

  return {
    socket,
    messages,
    /** Close code and reason text; null while the connection is open. */
    get closed() {
      return closed;
    },
    send,
    raw: (data: string | Buffer): void => socket.send(data),
    request,
    /** Like `request`, but throws unless the answer has this type. */
    async ask<T extends Type>(message: ClientMessage | object, type: T): Promise<ServerMessages[T]> {
      const answer = await request(message);
      if (answer.type !== type) throw new Error(`answered ${JSON.stringify(answer)} instead of ${type}`);
      return answer as ServerMessages[T];
    },
    of,
    /** The entries of all `changes` about other participants. */
    get changes(): Change[] {
      const own = of('welcome')[0]?.participant.participantId;
      return of('changes').flatMap(({ changes }) => changes.filter((change) => idOf(change) !== own));
    },
    /** The other participants that the client knows from its latest roster and the changes since. */
    get others(): ReadonlyMap<string, RemoteParticipant> {
      return othersOf(messages);
    },
    async untilOthers(fits: (others: ReadonlyMap<string, RemoteParticipant>) => boolean): Promise<void> {
      await untilFound('the others', WITHIN_MS, () => (fits(othersOf(messages)) ? true : undefined));
    },
    /** Resolves to the first message of this type that fits, including earlier messages. */
    until: <T extends Type>(type: T, fits: (message: ServerMessages[T]) => boolean = () => true) =>
      untilFound(`a ${type}`, WITHIN_MS, () => of(type).find(fits)),
    /** Throws unless both the `closing` message and the close frame give the reason. */
    async untilClosed(reason?: CloseReason) {
      await untilFound('the end of the connection', WITHIN_MS, () => closed ?? undefined);
      const closing = of('closing').at(-1);
      if (reason !== undefined && (closing?.reason !== reason || closed?.reason !== reason)) {
        throw new Error(`closed with ${JSON.stringify({ closed, closing })} instead of ${reason}`);
      }
      return closing;
    },
    on: (listener: (message: ServerMessage) => void) => void listeners.push(listener),
    /** Like `on`, but starts with the messages received so far. */
    all(listener: (message: ServerMessage) => void): void {
      for (const message of messages) listener(message);
      listeners.push(listener);
    },
    /** Ends the connection without a close frame, like a broken network. */
    terminate: () => socket.terminate(),
    /** Ends the session and the connection. No listener is called any more. */
    leave(): void {
      listeners.length = 0;
      if (socket.readyState === WebSocket.OPEN) send({ type: 'leave' });
      socket.terminate();
    },
  };
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
