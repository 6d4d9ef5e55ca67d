import { MediaError } from '../types.js';
import type { JanusConnection, JanusRequest, RequestOptions, SessionListener } from './connection.js';
import { JanusHandle, MediaPublisher, type HandleSession } from './handle.js';
import { idIn, isJanusError, JANUS, type JanusMessage } from './messages.js';
import { MediaSubscriber } from './subscriber.js';

/**
 * A set of peers that processes can hand over. The process that holds it keeps it alive. Otherwise Janus ends it after
 * half a minute.
 */
export class MediaSession implements HandleSession, SessionListener {
  readonly #handles = new Map<number, JanusHandle>();
  readonly #keepAlive: NodeJS.Timeout;
  /** Why this process cannot use the session any more. */
  #over: MediaError | undefined;

  private constructor(
    private readonly connection: JanusConnection,
    readonly id: number,
  ) {
    connection.listen(id, this);
    // A missing answer means nothing: the ping of the connection detects a frozen server.
    const keepAlive = () => this.request({ janus: 'keepalive' }).catch(() => undefined);
    this.#keepAlive = setInterval(() => void keepAlive(), connection.options.deadlines.keepAliveEveryMs);
  }

  static async create(connection: JanusConnection): Promise<MediaSession> {
    const id = idIn(await connection.request({ janus: 'create' }));
    if (id === undefined) throw new MediaError('refused', 'Janus created a session without an id');
    return new MediaSession(connection, id);
  }

  /**
   * Takes over a session that any process has created. From then on its notices go to this connection.
   * @throws MediaError `unavailable` if the session does not exist (any more)
   */
  static async claim(connection: JanusConnection, id: number): Promise<MediaSession> {
    // Listens first: notices may follow in the same packet as the answer.
    const session = new MediaSession(connection, id);
    try {
      await session.request({ janus: 'claim' });
    } catch (error) {
      session.abandon();
      throw error;
    }
    return session;
  }

  /** Whether this process can use it: it was neither destroyed nor abandoned, and Janus still has it. */
  get isOpen(): boolean {
    return this.#over === undefined;
  }

  attachPublisher(roomId: string, feedId: string): Promise<MediaPublisher> {
    return MediaPublisher.attach(this, roomId, feedId);
  }

  /**
   * Prepares to receive; the first streams create the peer connection.
   * @param label shown by Janus' administration interface
   */
  async attachSubscriber(roomId: string, label: string): Promise<MediaSubscriber> {
    return new MediaSubscriber(this, await this.attach(label), roomId, false);
  }

  /** Takes over a publisher of a claimed session. Sends no request. */
  adoptPublisher(handleId: number, feedId: string): MediaPublisher {
    return new MediaPublisher(this, handleId, feedId, true);
  }

  /** Takes over a subscriber of a claimed session whose last offer is answered. Sends no request. */
  adoptSubscriber(handleId: number, roomId: string): MediaSubscriber {
    return new MediaSubscriber(this, handleId, roomId, true);
  }

  /** Frees a peer of a claimed session that is not taken over. Never rejects. */
  detach(handleId: number): Promise<void> {
    return new JanusHandle(this, handleId).detach();
  }

  /** Ends the session with its peers, which emit no events. Idempotent, never rejects: Janus ends it by itself, too. */
  async destroy(): Promise<void> {
    if (!this.isOpen) return;
    this.#finish(new MediaError('closed', 'The session was destroyed'));
    await this.connection.request({ janus: 'destroy', session_id: this.id }).catch(() => undefined);
  }

  /** Forgets the session without a request: another process may have claimed it. Idempotent. */
  abandon(): void {
    this.#finish(new MediaError('closed', 'The session was abandoned'));
  }

  async attach(label: string): Promise<number> {
    const request = { janus: 'attach', plugin: 'janus.plugin.videoroom', opaque_id: label };
    const handleId = idIn(await this.request(request));
    if (handleId === undefined) throw new MediaError('refused', 'Janus created a handle without an id');
    // The session may have ended before the handle had a listener.
    if (this.#over !== undefined) throw this.#over;
    return handleId;
  }

  async request(message: JanusRequest, options?: RequestOptions): Promise<JanusMessage> {
    if (this.#over !== undefined) throw this.#over;
    try {
      return await this.connection.request({ ...message, session_id: this.id }, options);
    } catch (error) {
      if (error instanceof MediaError && isJanusError(error, JANUS.sessionNotFound)) this.onLost(error);
      throw error;
    }
  }

  listen(handle: JanusHandle): void {
    this.#handles.set(handle.handleId, handle);
  }

  unlisten(handleId: number): void {
    this.#handles.delete(handleId);
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
    clearInterval(this.#keepAlive);
    this.#handles.clear();
    this.connection.unlisten(this.id, this);
  }
}
