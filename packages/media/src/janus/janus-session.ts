import { MediaError } from '../media-node.js';
import type { JanusConnection, JanusRequest, RequestOptions, SessionListener } from './janus-connection.js';
import { isJanusError, JANUS } from './janus-errors.js';
import { idIn, type JanusMessage } from './janus-messages.js';

/** Receives a handle's notices. `onLost` reports the end of the session, which also ends the handle. */
export interface HandleListener {
  onNotice(message: JanusMessage): void;
  onLost(error: MediaError): void;
}

/**
 * A session on a Janus: a set of handles. It lives while requests keep it alive. Another process may claim it, which
 * takes its handles over.
 */
export class JanusSession implements SessionListener {
  readonly id: number;
  /** Resolves with the reason when this process has lost the session. */
  readonly ended: Promise<MediaError>;
  readonly #connection: JanusConnection;
  readonly #handles = new Map<number, HandleListener>();
  #end: (error: MediaError) => void = () => undefined;
  #over: MediaError | undefined;

  private constructor(connection: JanusConnection, id: number) {
    this.#connection = connection;
    this.id = id;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    connection.listen(id, this);
  }

  /** @throws MediaError */
  static async create(connection: JanusConnection): Promise<JanusSession> {
    const answer = await connection.request({ janus: 'create' }, { onLate: (late) => discard(connection, idIn(late)) });
    const id = idIn(answer);
    if (id === undefined) throw new MediaError('refused', 'Janus created a session without an id');
    return new JanusSession(connection, id);
  }

  /**
   * Takes over a session that any process has created. From then on its notices go to this connection.
   * @throws MediaError `unavailable` if the session does not exist (any more)
   */
  static async claim(connection: JanusConnection, id: number): Promise<JanusSession> {
    // Listens first: notices may follow in the same packet as the answer.
    const session = new JanusSession(connection, id);
    try {
      await session.request({ janus: 'claim' });
    } catch (error) {
      session.abandon();
      throw error;
    }
    return session;
  }

  /** Whether this process can use the session. */
  get isOpen(): boolean {
    return this.#over === undefined;
  }

  /**
   * Sends a request and resolves to its answer. Rejects with a JanusError, or a MediaError `timeout` or `unavailable`.
   */
  async request(message: JanusRequest, options?: RequestOptions): Promise<JanusMessage> {
    if (this.#over !== undefined) throw this.#over;
    try {
      return await this.#connection.request({ ...message, session_id: this.id }, options);
    } catch (error) {
      if (error instanceof MediaError && isJanusError(error, JANUS.sessionNotFound)) this.onLost(error);
      throw error;
    }
  }

  listen(handleId: number, listener: HandleListener): void {
    this.#handles.set(handleId, listener);
  }

  unlisten(handleId: number): void {
    this.#handles.delete(handleId);
  }

  keepAlive(): void {
    // A missing answer means nothing: the ping of the connection detects a frozen server.
    this.request({ janus: 'keepalive' }).catch(() => undefined);
  }

  /** Ends the session with its handles. Idempotent, never rejects: without requests, Janus ends it by itself. */
  async destroy(): Promise<void> {
    if (!this.isOpen) return;
    this.#finish(new MediaError('closed', 'The session was destroyed'));
    await this.#connection.request({ janus: 'destroy', session_id: this.id }).catch(() => undefined);
  }

  /** Forgets the session without a request. Another process may have claimed it. Idempotent. */
  abandon(): void {
    this.#finish(new MediaError('closed', 'The session was abandoned'));
  }

  onNotice(message: JanusMessage): void {
    const { sender } = message;
    if (message.janus === 'timeout') this.onLost(new MediaError('unavailable', 'Janus has ended the session'));
    else if (sender !== undefined) this.#handles.get(sender)?.onNotice(message);
  }

  onLost(error: MediaError): void {
    const handles = [...this.#handles.values()];
    this.#finish(error);
    for (const handle of handles) handle.onLost(error);
  }

  #finish(error: MediaError): void {
    if (this.#over !== undefined) return;
    this.#over = error;
    this.#handles.clear();
    this.#connection.unlisten(this.id, this);
    this.#end(error);
  }
}

/** Ends a session whose creation was answered too late. */
function discard(connection: JanusConnection, id: number | undefined): void {
  if (id !== undefined) connection.request({ janus: 'destroy', session_id: id }).catch(() => undefined);
}
