import { randomUUID } from 'node:crypto';
import type { JanusHandle } from './handle.js';
import { isJanusError, JANUS, JanusError } from './messages.js';

/** The room that all processes join to ask VideoRoom. It carries no media. */
export const PROBE_ROOM = 'callplane-probe';

/**
 * Asks the one thread of VideoRoom that carries out joins, publications and subscriptions. Janus itself answers
 * keep-alives, and synchronous requests such as `list`, while that thread hangs.
 *
 * The thread answers a `configure` without settings, which changes nothing. It answers a handle that is in no room with an
 * error, but writes that to the log of Janus each time. So the handle joins a room first. A `configure` costs Janus about
 * 0.2 ms of processor time.
 */
export class VideoRoomProbe {
  readonly #handle: JanusHandle;
  readonly #makeRoom: ((roomId: string) => Promise<void>) | null;
  readonly #deadlineMs: number;
  #isJoined = false;

  /** @param makeRoom null for a process that may not make rooms: the log gets its errors until another makes the room */
  constructor(handle: JanusHandle, makeRoom: ((roomId: string) => Promise<void>) | null, deadlineMs: number) {
    this.#handle = handle;
    this.#makeRoom = makeRoom;
    this.#deadlineMs = deadlineMs;
  }

  /**
   * Resolves once the thread has answered, whatever the answer is.
   * @throws MediaError `timeout` or `unavailable`
   */
  async ask(): Promise<void> {
    const join = { request: 'join', ptype: 'publisher', room: PROBE_ROOM, id: randomUUID() };
    try {
      await this.#handle.request(this.#isJoined ? { request: 'configure' } : join, this.#deadlineMs);
      this.#isJoined = true;
    } catch (error) {
      if (!(error instanceof JanusError)) throw error;
      if (isJanusError(error, JANUS.noSuchRoom)) await this.#makeRoom?.(PROBE_ROOM).catch(() => undefined);
    }
  }
}
