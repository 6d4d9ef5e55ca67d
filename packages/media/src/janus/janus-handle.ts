import type { IceCandidate } from '../media-node.js';
import { MediaError } from '../media-node.js';
import type { HandleListener, JanusConnection } from './janus-connection.js';
import { idIn, pluginData, sdpIn, type SessionDescription } from './janus-messages.js';

/** What the plug-in answered. */
export interface PluginAnswer {
  data: Readonly<Record<string, unknown>>;
  sdp: string | undefined;
}

export type PluginRequest = { request: string } & Record<string, unknown>;

/** A handle of the VideoRoom plug-in: what Janus calls one user of it, with one peer connection at most. */
export class JanusHandle {
  #detached: Promise<void> | undefined;

  private constructor(
    private readonly connection: JanusConnection,
    private readonly id: number,
  ) {}

  /** `label` is Janus' `opaque_id`, which its administration interface and its event handlers show. */
  static async attach(connection: JanusConnection, label: string, listener?: HandleListener): Promise<JanusHandle> {
    const discard = (handleId: number) => void new JanusHandle(connection, handleId).detach();
    const answer = await connection.request(
      { janus: 'attach', plugin: 'janus.plugin.videoroom', opaque_id: label },
      {
        onLate: (late) => {
          const handleId = idIn(late);
          if (handleId !== undefined) discard(handleId);
        },
      },
    );
    const id = idIn(answer);
    if (id === undefined) throw new MediaError('refused', 'Janus made a handle without an id');
    if (listener !== undefined) connection.listen(id, listener);
    return new JanusHandle(connection, id);
  }

  async request(body: PluginRequest, jsep?: SessionDescription): Promise<PluginAnswer> {
    const message = { janus: 'message', handle_id: this.id, body, ...(jsep === undefined ? {} : { jsep }) };
    const answer = await this.connection.request(message, { awaitsEvent: true, name: body.request });
    return { data: pluginData(answer), sdp: sdpIn(answer) };
  }

  async trickle(candidate: IceCandidate | null): Promise<void> {
    await this.connection.request({
      janus: 'trickle',
      handle_id: this.id,
      candidate: candidate ?? { completed: true },
    });
  }

  /** Idempotent, and never rejects: a handle that cannot be given back goes with its session. */
  detach(): Promise<void> {
    this.#detached ??= (async () => {
      this.connection.unlisten(this.id);
      try {
        await this.connection.request({ janus: 'detach', handle_id: this.id });
      } catch {
        // It is gone already, or the connection is.
      }
    })();
    return this.#detached;
  }
}
