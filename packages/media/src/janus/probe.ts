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
 * @param makeRoom null for a process that may not make rooms: the log gets its errors until another makes the room
 * @returns a function that resolves once the thread has answered, whatever the answer is, and throws a MediaError
 *   `timeout` or `unavailable`
 */
export function videoRoomProbe(
  handle: JanusHandle,
  makeRoom: ((roomId: string) => Promise<void>) | null,
  deadlineMs: number,
): () => Promise<void> {
  let isJoined = false;
  return async () => {
    const join = { request: 'join', ptype: 'publisher', room: PROBE_ROOM, id: randomUUID() };
    try {
      await handle.request(isJoined ? { request: 'configure' } : join, deadlineMs);
      isJoined = true;
    } catch (error) {
      if (!(error instanceof JanusError)) throw error;
      if (isJanusError(error, JANUS.noSuchRoom)) await makeRoom?.(PROBE_ROOM).catch(() => undefined);
    }
  };
}
