import { randomUUID } from 'node:crypto';
import WebSocket from 'ws';
import { MediaError } from '../types.js';
import { errorIn, JanusError, parseJanusMessage, type JanusMessage } from './messages.js';

export interface JanusDeadlines {
  /** TCP connection and WebSocket handshake. */
  connectMs: number;
  /** Applies to every request without a deadline of its own. */
  requestMs: number;
  /**
   * The pause between two pings, and the deadlines of each: of Janus, and of its VideoRoom plug-in, whose queue may be
   * long. The pause and a deadline are the longest time that a frozen server, or a frozen plug-in, goes undetected.
   */
  pingEveryMs: number;
  pingMs: number;
  videoRoomMs: number;
  /** The pause between two keep-alives of a session. */
  keepAliveEveryMs: number;
}

export const DEFAULT_DEADLINES: JanusDeadlines = {
  connectMs: 2_000,
  requestMs: 5_000,
  pingEveryMs: 2_000,
  pingMs: 2_000,
  videoRoomMs: 5_000,
  keepAliveEveryMs: 5_000,
};

interface JanusConnectionOptions {
  url: string;
  apiSecret: string;
  deadlines: JanusDeadlines;
}

/** A request. `request()` adds the fields that all requests share. */
export type JanusRequest = { janus: string; session_id?: number; handle_id?: number } & Record<string, unknown>;

export interface RequestOptions {
  /** Resolve with the event that follows the acknowledgement, not with the acknowledgement. */
  awaitsEvent?: boolean;
  /** Called with the acknowledgement of a request that awaits its event, unless the event comes first. */
  onAcknowledged?: () => void;
  name?: string;
  deadlineMs?: number | undefined;
}

interface Pending {
  name: string;
  awaitsEvent: boolean;
  onAcknowledged: (() => void) | undefined;
  timer: NodeJS.Timeout;
  resolve: (answer: JanusMessage) => void;
  reject: (error: MediaError) => void;
}

/**
 * Receives the notices of a session, and the answers to requests of another process that held the session before:
 * these have a `transaction`. `onLost` reports the end of the connection, and so of the session.
 */
export interface SessionListener {
  onNotice(message: JanusMessage): void;
  onLost(error: MediaError): void;
}

/** Room lists are not paged: one answer holds all rooms, at about 500 bytes each. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

/**
 * One WebSocket to Janus, which carries any number of sessions: requests with deadlines, notices to sessions, and a ping
 * that detects a frozen server.
 * A connection whose socket is lost stays ended. Janus keeps its sessions until their time to claim is over.
 */
export class JanusConnection {
  /** Resolves with the reason when the connection ends. */
  readonly ended: Promise<MediaError>;
  readonly #pending = new Map<string, Pending>();
  readonly #sessions = new Map<number, SessionListener>();
  /**
   * Random for each connection. A claimed session may get answers to requests of its previous process, which must not
   * match requests of this one.
   */
  readonly #transactionPrefix = randomUUID();
  #lastTransaction = 0;
  #lost: MediaError | undefined;
  #end: (error: MediaError) => void = () => undefined;

  private constructor(
    private readonly socket: WebSocket,
    readonly options: JanusConnectionOptions,
  ) {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    socket.on('message', (data: Buffer) => this.#receive(data.toString()));
    socket.on('error', (error) => this.#lose('connection failed', error));
    socket.on('close', () => this.#lose('connection closed'));
  }

  /**
   * Connects. Aborting `signal` closes the connection at any time.
   * @throws MediaError if the connection cannot be made.
   */
  static async open(options: JanusConnectionOptions, signal: AbortSignal): Promise<JanusConnection> {
    const socket = new WebSocket(options.url, 'janus-protocol', {
      handshakeTimeout: options.deadlines.connectMs,
      maxPayload: MESSAGE_BYTES_MAX,
      perMessageDeflate: false,
    });
    const connection = new JanusConnection(socket, options);
    const abort = () => connection.close();
    signal.addEventListener('abort', abort, { once: true });
    void connection.ended.then(() => signal.removeEventListener('abort', abort));
    if (signal.aborted) abort();
    try {
      const opened = new Promise<undefined>((resolve) => socket.once('open', () => resolve(undefined)));
      const failed = await Promise.race([opened, connection.ended]);
      if (failed !== undefined) throw failed;
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** False from its loss on, before its sessions learn of that. */
  get isOpen(): boolean {
    return this.#lost === undefined;
  }

  /**
   * Sends a request and resolves to its answer. Rejects with a JanusError, or a MediaError `timeout` or `unavailable`.
   */
  request(
    message: JanusRequest,
    { awaitsEvent = false, onAcknowledged, name = message.janus, deadlineMs }: RequestOptions = {},
  ): Promise<JanusMessage> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    this.#lastTransaction += 1;
    const transaction = `${this.#transactionPrefix}-${this.#lastTransaction}`;
    return new Promise((resolve, reject) => {
      const overdue = () => {
        if (!this.#pending.delete(transaction)) return;
        reject(new MediaError('timeout', `Janus did not answer "${name}" in time`));
      };
      // After a pause of this process the answer may be there, unread. Node runs timers before it reads sockets.
      const timer = setTimeout(() => setImmediate(overdue), deadlineMs ?? this.options.deadlines.requestMs);
      this.#pending.set(transaction, { name, awaitsEvent, onAcknowledged, timer, resolve, reject });
      this.socket.send(JSON.stringify({ ...message, transaction, apisecret: this.options.apiSecret }));
    });
  }

  listen(sessionId: number, listener: SessionListener): void {
    this.#sessions.set(sessionId, listener);
  }

  unlisten(sessionId: number, listener: SessionListener): void {
    if (this.#sessions.get(sessionId) === listener) this.#sessions.delete(sessionId);
  }

  close(reason = 'connection abandoned', cause?: unknown): void {
    this.#lose(reason, cause);
  }

  #receive(text: string): void {
    const message = parseJanusMessage(text);
    if (message === undefined) return;
    const { transaction, session } = message;
    if (transaction?.startsWith(this.#transactionPrefix) === true) this.#answer(transaction, message);
    else if (session !== undefined) this.#sessions.get(session)?.onNotice(message);
  }

  #answer(transaction: string, message: JanusMessage): void {
    const pending = this.#pending.get(transaction);
    // The request has timed out, or Janus sent the acknowledgement after the event that it announces. A session or
    // handle of a late answer stays unused: Janus ends a session without keep-alives, and handles with their session.
    if (pending === undefined) return;
    if (message.janus === 'ack' && pending.awaitsEvent) {
      pending.onAcknowledged?.();
      return;
    }
    this.#pending.delete(transaction);
    clearTimeout(pending.timer);
    const error = errorIn(message);
    if (error === undefined) pending.resolve(message);
    else pending.reject(new JanusError(pending.name, error.code, error.reason));
  }

  #lose(reason: string, cause?: unknown): void {
    if (this.#lost !== undefined) return;
    const lost = new MediaError('unavailable', `The media server is unavailable: ${reason}`, { cause });
    this.#lost = lost;
    // A frozen server would never answer the closing handshake.
    this.socket.terminate();
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer);
      pending.reject(lost);
    }
    this.#pending.clear();
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    for (const session of sessions) session.onLost(lost);
    this.#end(lost);
  }
}
