import { CallplaneError } from '../errors.js';
import type { Platform, WebSocketLike } from '../platform.js';
import {
  CLOSE_REASONS,
  SUBPROTOCOL,
  type ClientMessage,
  type CloseReason,
  type IceServersMessage,
  type OkMessage,
  type PongMessage,
  type PublishedMessage,
  type ServerMessage,
} from '../protocol.generated.js';

/** How a connection ended. Without a reason it was the network, or somebody on the way. */
export interface SocketEnd {
  reason: CloseReason | undefined;
  message: string;
  reconnect: 'no' | 'resume' | 'join';
}

export interface SocketListener {
  /** Everything but the answers to requests. */
  onMessage: (message: ServerMessage) => void;
  /** Exactly once, also when it never opened. */
  onEnd: (end: SocketEnd) => void;
}

/** What answers a request of each type; everything else is answered with `ok`. */
interface Answers {
  publish: PublishedMessage;
  iceServers: IceServersMessage;
  ping: PongMessage;
}
export type AnswerTo<T extends ClientMessage> = T['type'] extends keyof Answers ? Answers[T['type']] : OkMessage;

interface Waiting {
  resolve: (message: ServerMessage) => void;
  reject: (error: CallplaneError) => void;
  timer: ReturnType<typeof setTimeout>;
}

const OPEN = 1;

/** One WebSocket connection to a gateway, from its opening to its end. */
export class SignalingSocket {
  readonly #socket: WebSocketLike;
  readonly #listener: SocketListener;
  readonly #waiting = new Map<string, Waiting>();
  #requests = 0;
  #said: SocketEnd | undefined;
  #isOver = false;

  constructor(platform: Platform, url: string, onOpen: () => void, listener: SocketListener) {
    this.#listener = listener;
    const socket = (this.#socket = new platform.WebSocket(url, SUBPROTOCOL));
    socket.onopen = onOpen;
    socket.onmessage = (event: { data: unknown }) => this.#receive(event.data);
    socket.onclose = (event: { code: number; reason: string }) =>
      this.#end(this.#said ?? endOf(event.code, event.reason));
    // 'close' always follows.
    socket.onerror = () => undefined;
  }

  /** Sends if it can. */
  send(message: ClientMessage): void {
    if (!this.#isOver && this.#socket.readyState === OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** Rejects with the gateway's error, with `no_answer`, or with `connection_lost` when the connection ends before. */
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

  /** Ends it at once: on a network that is gone, a browser's own closing takes minutes. */
  close(): void {
    this.#socket.close(1000);
    this.#end(this.#said ?? NETWORK);
  }

  #receive(data: unknown): void {
    if (this.#isOver || typeof data !== 'string') return;
    const message = parse(data);
    if (message === undefined) {
      this.close();
      return;
    }
    if (message.type === 'closing') {
      this.#said = { reason: message.reason, message: message.message, reconnect: message.reconnect };
      this.close();
      return;
    }
    const replyTo = 'replyTo' in message ? message.replyTo : undefined;
    if (replyTo === undefined) {
      this.#listener.onMessage(message);
      return;
    }
    const waiting = this.#waiting.get(replyTo);
    if (waiting === undefined) return;
    this.#waiting.delete(replyTo);
    clearTimeout(waiting.timer);
    if (message.type === 'error') waiting.reject(new CallplaneError(message.code, message.message));
    else waiting.resolve(message);
  }

  #end(end: SocketEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(connectionLost());
    }
    this.#waiting.clear();
    this.#listener.onEnd(end);
  }
}

const NETWORK: SocketEnd = { reason: undefined, message: 'The connection was lost.', reconnect: 'resume' };

function parse(data: string): ServerMessage | undefined {
  try {
    return JSON.parse(data) as ServerMessage;
  } catch {
    // Whoever says this is no gateway.
    return undefined;
  }
}

/** The close frame says the reason again, for when the message before it did not make it. */
function endOf(code: number, reason: string): SocketEnd {
  const known = Object.entries(CLOSE_REASONS).find(([name, entry]) => name === reason && entry.code === code);
  if (known === undefined) return NETWORK;
  return { reason: known[0] as CloseReason, message: known[1].message, reconnect: known[1].reconnect };
}

function connectionLost(): CallplaneError {
  return new CallplaneError('connection_lost', 'The connection was lost before the answer came.');
}
