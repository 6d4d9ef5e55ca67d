import { MediaError, type MediaNode, type MediaSession } from '@callplane/media';

interface Opened {
  readonly node: MediaNode;
  readonly session: MediaSession;
}

/**
 * The session on a media server that holds both peer connections of one participant session, so that another gateway
 * can take over exactly these. The first peer connection opens it: a viewer that receives nothing has none.
 */
export class OwnSession {
  #opened: Opened | null = null;
  #opening: { node: MediaNode; session: Promise<MediaSession> } | null = null;
  #end: 'destroyed' | 'abandoned' | null = null;

  /** The session; null if there is none, or the media server has ended it. */
  get current(): Opened | null {
    return this.#opened?.session.isOpen === true ? this.#opened : null;
  }

  /**
   * Opens a session on the node, unless there is one.
   * @throws MediaError
   */
  open(node: MediaNode): Promise<MediaSession> {
    const { current } = this;
    if (current?.node === node) return Promise.resolve(current.session);
    if (this.#opening?.node !== node) {
      const opening = { node, session: this.#open(node) };
      this.#opening = opening;
      const done = () => {
        if (this.#opening === opening) this.#opening = null;
      };
      opening.session.then(done, done);
    }
    return this.#opening.session;
  }

  /** Takes over a session that was claimed. */
  adopt(node: MediaNode, session: MediaSession): void {
    if (this.#end === null) this.#opened = { node, session };
    else if (this.#end === 'destroyed') void session.destroy();
    else session.abandon();
  }

  /** Ends the session with its peer connections. Only for a gateway that holds the participant session. Idempotent. */
  async destroy(): Promise<void> {
    this.#end ??= 'destroyed';
    await this.#opened?.session.destroy();
  }

  /** Forgets the session, which another gateway may have taken over. Idempotent. */
  abandon(): void {
    this.#end ??= 'abandoned';
    this.#opened?.session.abandon();
  }

  async #open(node: MediaNode): Promise<MediaSession> {
    const session = await node.openSession();
    if (this.#end !== null || this.#opening?.node !== node) {
      await session.destroy();
      throw new MediaError('closed', 'The session was not wanted any more');
    }
    // The peer connections of a room that has moved are gone already.
    void this.#opened?.session.destroy();
    this.#opened = { node, session };
    return session;
  }
}
