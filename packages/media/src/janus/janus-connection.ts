import WebSocket from 'ws';
import { MediaError } from '../media-node.js';
import { JanusError } from './janus-errors.js';
import { errorIn, idIn, parseJanusMessage, type JanusMessage } from './janus-messages.js';

/** How long things may take, all in milliseconds. */
export interface JanusDeadlines {
  /** TCP connection and WebSocket handshake. */
  connectMs: number;
  /** Any request. */
  requestMs: number;
  /** Between two pings, and for the answer to one: a frozen server is found within both together. */
  pingEveryMs: number;
  pingMs: number;
  /** How long an offer to a subscriber may stay unanswered before further updates are refused. */
  offerMs: number;
}

export const DEFAULT_DEADLINES: JanusDeadlines = {
  connectMs: 2_000,
  requestMs: 5_000,
  pingEveryMs: 2_000,
  pingMs: 2_000,
  offerMs: 10_000,
};

export interface JanusConnectionOptions {
  url: string;
  apiSecret: string;
  deadlines: JanusDeadlines;
}

/** A request; what every request has in common is added when it is sent. */
export type JanusRequest = { janus: string; handle_id?: number } & Record<string, unknown>;

export interface RequestOptions {
  /** The answer is an event that follows a mere acknowledgement. */
  awaitsEvent?: boolean;
  /** What the error is to call the request. */
  name?: string;
  deadlineMs?: number;
  /** Told of a success that comes after the deadline: what it made is nobody's. */
  onLate?: (answer: JanusMessage) => void;
}

interface Pending {
  name: string;
  awaitsEvent: boolean;
  timer: NodeJS.Timeout;
  onLate: ((answer: JanusMessage) => void) | undefined;
  resolve: (answer: JanusMessage) => void;
  reject: (error: MediaError) => void;
}

/** Who hears of a handle's notices, and of the end of the connection, with which the handle is gone. */
export interface HandleListener {
  onNotice(message: JanusMessage): void;
  onLost(error: MediaError): void;
}

/** Rooms without end may be listed in one answer, of about 500 bytes each. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

/**
 * One WebSocket to Janus and the one session on it: requests with deadlines, notices to handles, and a ping that finds
 * a server which is frozen. Once its socket is lost it is over; Janus drops the session's handles within milliseconds.
 */
export class JanusConnection {
  /** Resolves once it is over, with the reason. */
  readonly ended: Promise<MediaError>;
  readonly #pending = new Map<string, Pending>();
  readonly #late = new Map<string, (answer: JanusMessage) => void>();
  readonly #handles = new Map<number, HandleListener>();
  #sessionId: number | undefined;
  #lastTransaction = 0;
  #lost: MediaError | undefined;
  #pingTimer: NodeJS.Timeout | undefined;
  #end: (error: MediaError) => void = () => undefined;

  private constructor(
    private readonly socket: WebSocket,
    private readonly options: JanusConnectionOptions,
  ) {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    socket.on('message', (data: Buffer) => this.#receive(data.toString()));
    socket.on('error', (error) => this.#lose('its connection failed', error));
    socket.on('close', () => this.#lose('its connection was closed'));
  }

  /** Connects and makes a session. Rejects with a MediaError; `signal` closes it, at whatever time. */
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
      connection.#sessionId = idIn(await connection.request({ janus: 'create' }));
      if (connection.#sessionId === undefined) throw new MediaError('refused', 'Janus made a session without an id');
      connection.#pingLater();
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Sends a request and resolves to its answer. Rejects with a JanusError, or a MediaError `timeout`, `unavailable`. */
  request(
    message: JanusRequest,
    { awaitsEvent = false, name = message.janus, deadlineMs, onLate }: RequestOptions = {},
  ): Promise<JanusMessage> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    this.#lastTransaction += 1;
    const transaction = String(this.#lastTransaction);
    return new Promise((resolve, reject) => {
      const overdue = () => {
        this.#pending.delete(transaction);
        if (onLate !== undefined) this.#late.set(transaction, onLate);
        reject(new MediaError('timeout', `Janus did not answer "${name}" in time`));
      };
      const timer = setTimeout(overdue, deadlineMs ?? this.options.deadlines.requestMs);
      this.#pending.set(transaction, { name, awaitsEvent, timer, onLate, resolve, reject });
      const session = this.#sessionId === undefined ? {} : { session_id: this.#sessionId };
      this.socket.send(JSON.stringify({ ...message, ...session, transaction, apisecret: this.options.apiSecret }));
    });
  }

  /** Asks for an acknowledgement, which keeps the session alive too. */
  async ping(): Promise<void> {
    await this.request({ janus: 'keepalive' }, { name: 'ping', deadlineMs: this.options.deadlines.pingMs });
  }

  listen(handleId: number, listener: HandleListener): void {
    this.#handles.set(handleId, listener);
  }

  unlisten(handleId: number): void {
    this.#handles.delete(handleId);
  }

  close(): void {
    this.#lose('the connection was given up');
  }

  #pingLater(): void {
    this.#pingTimer = setTimeout(() => {
      this.ping().then(
        () => {
          if (this.#lost === undefined) this.#pingLater();
        },
        (error: unknown) => this.#lose('it did not answer a ping', error),
      );
    }, this.options.deadlines.pingEveryMs);
  }

  #receive(text: string): void {
    const message = parseJanusMessage(text);
    if (message === undefined) return;
    const { transaction, sender } = message;
    if (transaction !== undefined) this.#answer(transaction, message);
    else if (message.janus === 'timeout') this.#lose('it has ended the session');
    else if (sender !== undefined) this.#handles.get(sender)?.onNotice(message);
  }

  #answer(transaction: string, message: JanusMessage): void {
    const pending = this.#pending.get(transaction);
    if (pending === undefined) {
      // Nobody waits any more; an acknowledgement can also come behind the event that it announces.
      if (message.janus === 'success') this.#late.get(transaction)?.(message);
      this.#late.delete(transaction);
      return;
    }
    if (message.janus === 'ack' && pending.awaitsEvent) return;
    this.#pending.delete(transaction);
    clearTimeout(pending.timer);
    const error = errorIn(message);
    if (error === undefined) pending.resolve(message);
    else pending.reject(new JanusError(pending.name, error.code, error.reason));
  }

  #lose(reason: string, cause?: unknown): void {
    if (this.#lost !== undefined) return;
    const lost = new MediaError('unavailable', `The media server is away: ${reason}`, { cause });
    this.#lost = lost;
    clearTimeout(this.#pingTimer);
    // A frozen server would never answer the closing handshake.
    this.socket.terminate();
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer);
      pending.reject(lost);
    }
    this.#pending.clear();
    this.#late.clear();
    const handles = [...this.#handles.values()];
    this.#handles.clear();
    for (const handle of handles) handle.onLost(lost);
    this.#end(lost);
  }
}
