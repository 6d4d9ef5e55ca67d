import { setMaxListeners } from 'node:events';
import { connect, type Call, type Platform } from '@callplane/client-js';
import { WebSocket } from 'ws';
import { withoutSecrets, type HistoryWriter } from './history-writer.js';
import type { FrameLine, JsonObject } from './history.js';

const CONNECT_MS = 30_000;

export interface Joining {
  tenant: string;
  roomId: string;
  participantId: string;
  token: string;
}

/** Joins rooms with the SDK, and writes down every frame. */
export class Calls {
  welcomed = 0;
  #count = 0;
  readonly #open = new Set<Call>();
  readonly #closing = new AbortController();

  constructor(
    readonly url: string,
    readonly history: HistoryWriter,
  ) {
    // Every call listens.
    setMaxListeners(0, this.#closing.signal);
  }

  /**
   * @param peersOf the class of the peer connections of a call, by its name; without it, the call has no media.
   * @returns null if the service refused the session, or did not answer in time.
   */
  async join(
    { tenant, roomId, participantId, token }: Joining,
    peersOf?: (call: string) => Platform['RTCPeerConnection'],
  ): Promise<Call | null> {
    this.#count += 1;
    const call = `call${this.#count}`;
    const write: Write = (connection, what, more = {}) =>
      this.history.write('frames', {
        atMs: this.history.nowMs,
        tenant,
        roomId,
        participantId,
        call,
        connection,
        what,
        frame: null,
        code: null,
        reason: null,
        ...more,
      });
    const sockets = recordingSockets(call, write);
    try {
      const joined = await connect({
        url: this.url,
        token,
        connectTimeoutMs: CONNECT_MS,
        signal: this.#closing.signal,
        platform: { WebSocket: sockets, ...(peersOf === undefined ? {} : { RTCPeerConnection: peersOf(call) }) },
      });
      this.welcomed += 1;
      this.#open.add(joined);
      joined.on('closed', ({ reason }) => {
        this.#open.delete(joined);
        write(call, 'ended', { reason });
      });
      return joined;
    } catch (error) {
      write(call, 'ended', { reason: (error as { code?: string }).code ?? 'failed' });
      return null;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#open].map((call) => call.leave()));
  }
}

type Write = (
  connection: string,
  what: FrameLine['what'],
  more?: Partial<Pick<FrameLine, 'frame' | 'code' | 'reason'>>,
) => void;

/** The class of the WebSockets of one call. */
function recordingSockets(call: string, write: Write): Platform['WebSocket'] {
  let count = 0;
  return class extends WebSocket {
    readonly #name: string;

    constructor(address: string, protocols: string[]) {
      super(address, protocols);
      count += 1;
      this.#name = `${call}.${count}`;
      this.on('open', () => write(this.#name, 'opened'));
      this.on('message', (data: Buffer) => write(this.#name, 'received', { frame: frameOf(data.toString('utf8')) }));
      this.on('close', (code, reason) => write(this.#name, 'closed', { code, reason: reason.toString('utf8') }));
    }

    override send(data: unknown): void {
      write(this.#name, 'sent', { frame: frameOf(String(data)) });
      super.send(String(data));
    }
  };
}

function frameOf(text: string): JsonObject {
  try {
    return withoutSecrets(JSON.parse(text)) as JsonObject;
  } catch {
    return { unreadable: text.slice(0, 1000) };
  }
}
