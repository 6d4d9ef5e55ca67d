import { CallplaneError } from '../errors.js';
import type { Platform, WebSocketLike } from '../platform.js';
import {
  SUBPROTOCOL,
  type ClientMessage,
  type CloseReason,
  type IceServersMessage,
  type OkMessage,
  type PongMessage,
  type PublishedMessage,
  type RosterMessage,
  type ServerMessage,
  type ShownMessage,
} from '../protocol.generated.js';

/** How a connection ended. Without a reason, the network or a proxy ended it. */
export interface SocketEnd {
  reason: CloseReason | undefined;
  message: string;
  reconnect: 'no' | 'resume' | 'join';
  /** How long the gateway asks this client to stay away, in milliseconds. */
  retryAfterMs: number;
}

export interface SocketListener {
  onOpen: () => void;
  /** Everything but the answers to requests; `shown`, because its order among the changes matters. */
  onMessage: (message: ServerMessage) => void;
  /** Called exactly once, even if the socket never opened. */
  onEnd: (end: SocketEnd) => void;
}

/** The answer to each type of request; the others are answered with `ok`. */
interface Answers {
  publish: PublishedMessage;
  iceServers: IceServersMessage;
  test: IceServersMessage;
  ping: PongMessage;
  roster: RosterMessage;
  show: ShownMessage;
}
export type AnswerTo<T extends ClientMessage> = T['type'] extends keyof Answers ? Answers[T['type']] : OkMessage;

interface Waiting {
  resolve: (message: ServerMessage) => void;
  reject: (error: CallplaneError) => void;
  timer: ReturnType<typeof setTimeout>;
}

const OPEN = 1;

const LOST: SocketEnd = {
  reason: undefined,
  message: 'The connection was lost.',
  reconnect: 'resume',
  retryAfterMs: 0,
};

export class SignalingSocket {
  readonly #socket: WebSocketLike;
  readonly #waiting = new Map<string, Waiting>();
  #requests = 0;
  /** What the gateway says at last; until then as if the network had ended the connection. */
  #closing = LOST;
  #isOver = false;

  constructor(
    platform: Platform,
    url: string,
    private readonly listener: SocketListener,
  ) {
    const socket = (this.#socket = new platform.WebSocket(url, [SUBPROTOCOL]));
    socket.onopen = () => listener.onOpen();
    socket.onmessage = (event: { data: unknown }) => this.#receive(event.data);
    socket.onclose = () => this.#end();
    // 'close' always follows.
    socket.onerror = () => undefined;
  }

  send(message: ClientMessage): void {
    if (!this.#isOver && this.#socket.readyState === OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** Rejects with the gateway's error, with `no_answer`, or with `connection_lost` if the connection ends first. */
  request<T extends ClientMessage>(message: T, timeoutMs: number): Promise<AnswerTo<T>> {
    return new Promise((resolve, reject) => {
      if (this.#isOver || this.#socket.readyState !== OPEN) {
        reject(connectionLost());
        return;
      }
      const id = String(++this.#requests);
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new CallplaneError('no_answer', `The gateway did not answer "${message.type}" within ${timeoutMs} ms.`));
      }, timeoutMs);
      this.#waiting.set(id, { resolve: resolve as (message: ServerMessage) => void, reject, timer });
      this.#socket.send(JSON.stringify({ ...message, id }));
    });
  }

  /** Ends the connection at once: on a dead network, the browser's own close takes minutes. */
  close(): void {
    this.#socket.close(1000);
    this.#end();
  }

  #receive(data: unknown): void {
    if (this.#isOver || typeof data !== 'string') return;
    const message = parse(data);
    if (message === undefined) {
      this.close();
      return;
    }
    if (message.type === 'closing') {
      const { reason, reconnect, retryAfterSeconds = 0 } = message;
      this.#closing = { reason, message: message.message, reconnect, retryAfterMs: retryAfterSeconds * 1000 };
      this.close();
      return;
    }
    const replyTo = 'replyTo' in message ? message.replyTo : undefined;
    if (replyTo === undefined) {
      this.listener.onMessage(message);
      return;
    }
    const waiting = this.#waiting.get(replyTo);
    if (message.type === 'shown') this.listener.onMessage(message);
    if (waiting === undefined) return;
    this.#waiting.delete(replyTo);
    clearTimeout(waiting.timer);
    if (message.type === 'error') {
      const { code, details = [] } = message;
      waiting.reject(new CallplaneError(code, message.message, { details }));
    } else waiting.resolve(message);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(connectionLost());
    }
    this.#waiting.clear();
    this.listener.onEnd(this.#closing);
  }
}

function parse(data: string): ServerMessage | undefined {
  try {
    return JSON.parse(data) as ServerMessage;
  } catch {
    // A gateway sends only JSON, so the peer is not one.
    return undefined;
  }
}

function connectionLost(): CallplaneError {
  return new CallplaneError('connection_lost', 'The connection was lost before the response arrived.');
}
