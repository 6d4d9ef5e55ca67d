import type { IceCandidate } from '../media-node.js';
import { MediaError } from '../media-node.js';
import { idIn, pluginData, sdpIn, type SessionDescription } from './janus-messages.js';
import type { HandleListener, JanusSession } from './janus-session.js';

/** The plug-in's answer to a request. */
export interface PluginAnswer {
  data: Readonly<Record<string, unknown>>;
  sdp: string | undefined;
}

export type PluginRequest = { request: string } & Record<string, unknown>;

/** A handle of the VideoRoom plug-in: one user of the plug-in, with at most one peer connection. */
export class JanusHandle {
  #detached: Promise<void> | undefined;
  /** Resolves once Janus has acknowledged the last request in order. */
  #acknowledged: Promise<void> = Promise.resolve();
  /** Why this process must send no further request in order; undefined while it may. */
  #over: MediaError | undefined;

  private constructor(
    private readonly session: JanusSession,
    readonly id: number,
  ) {}

  /** `label` becomes Janus' `opaque_id`, which its administration interface and event handlers show. */
  static async attach(session: JanusSession, label: string, listener?: HandleListener): Promise<JanusHandle> {
    const discard = (handleId: number) => void new JanusHandle(session, handleId).detach();
    const answer = await session.request(
      { janus: 'attach', plugin: 'janus.plugin.videoroom', opaque_id: label },
      {
        onLate: (late) => {
          const handleId = idIn(late);
          if (handleId !== undefined) discard(handleId);
        },
      },
    );
    const id = idIn(answer);
    if (id === undefined) throw new MediaError('refused', 'Janus created a handle without an id');
    return JanusHandle.adopt(session, id, listener);
  }

  /** Takes over a handle of a claimed session. */
  static adopt(session: JanusSession, id: number, listener?: HandleListener): JanusHandle {
    if (listener !== undefined) session.listen(id, listener);
    return new JanusHandle(session, id);
  }

  /** Janus may carry out requests that are under way together in any order: each one has a thread of its own. */
  request(body: PluginRequest): Promise<PluginAnswer> {
    return this.#request(body, undefined, () => undefined);
  }

  /**
   * Janus carries out these requests one after another, in the order of the calls. Each request leaves when Janus has
   * acknowledged the one before it: from then on that one has its place in the queue of the plug-in. After the end of
   * the peer none leaves: another process may hold the handle by then.
   * @param onFailure called before the next request leaves
   */
  async requestInOrder(
    body: PluginRequest,
    jsep?: SessionDescription,
    onFailure?: (error: unknown) => void,
  ): Promise<PluginAnswer> {
    const before = this.#acknowledged;
    let onAcknowledged: () => void = () => undefined;
    this.#acknowledged = new Promise((resolve) => {
      onAcknowledged = resolve;
    });
    await before;
    try {
      if (this.#over !== undefined) throw this.#over;
      return await this.#request(body, jsep, onAcknowledged);
    } catch (error) {
      onFailure?.(error);
      throw error;
    } finally {
      // After a failure, too, the next request leaves.
      onAcknowledged();
    }
  }

  /** Rejects the requests in order that have not left, and later ones. */
  end(error: MediaError): void {
    this.#over ??= error;
  }

  async trickle(candidate: IceCandidate | null): Promise<void> {
    await this.session.request({
      janus: 'trickle',
      handle_id: this.id,
      candidate: candidate ?? { completed: true },
    });
  }

  /** Idempotent, and never rejects: Janus frees a handle that cannot be detached when the session ends. */
  detach(): Promise<void> {
    this.#detached ??= (async () => {
      this.session.unlisten(this.id);
      try {
        await this.session.request({ janus: 'detach', handle_id: this.id });
      } catch {
        // The handle or the connection is already gone.
      }
    })();
    return this.#detached;
  }

  async #request(
    body: PluginRequest,
    jsep: SessionDescription | undefined,
    onAcknowledged: () => void,
  ): Promise<PluginAnswer> {
    const message = { janus: 'message', handle_id: this.id, body, ...(jsep === undefined ? {} : { jsep }) };
    const answer = await this.session.request(message, { awaitsEvent: true, onAcknowledged, name: body.request });
    return { data: pluginData(answer), sdp: sdpIn(answer) };
  }
}
