import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '@callplane/client-js';
import { Peers, SpokenRooms, startTone } from './media-load.js';

const RECORDED_MS = { min: 3000, max: 9000 };
const TRIES = 4;
const AGAIN_MS = 1000;

/**
 * Rooms of one tenant in which somebody speaks and somebody listens while they are recorded: on request or from the
 * first join on, until a request, the longest duration, or the end of the room.
 */
export class RecordingLoop extends SpokenRooms {
  protected async meet(): Promise<void> {
    const { random, shared } = this;
    const isFromStart = random.chance(0.3);
    const option = isFromStart ? { record: { mode: 'tracks' } } : {};
    const room = { name: `Recorded ${random.text()}`, maxParticipants: 2, ...option };
    const roomId = await this.newRoom(room, random.text());
    if (roomId === null) return;
    const peers = new Peers(shared.calls.history, false);
    const tone = startTone();
    const calls: Call[] = [];
    try {
      if ((await this.enter(roomId, { peers, tone, calls })) === null) return;
      const recordingId = isFromStart ? null : await this.#record(roomId);
      await delay(random.between(RECORDED_MS.min, RECORDED_MS.max));
      if (recordingId !== null && random.chance(0.5)) await this.insist('POST', `/v1/recordings/${recordingId}/stop`);
    } finally {
      tone.stop();
      await this.insist('DELETE', `/v1/rooms/${roomId}`);
      peers.close();
      await Promise.all(calls.map((call) => call.leave()));
    }
  }

  /** @returns null if nothing can be recorded at present */
  async #record(roomId: string): Promise<string | null> {
    const how = this.random.pick([{ mode: 'tracks' }, { mode: 'tracks' }, { mode: 'composite', audioOnly: true }]);
    const body = { ...how, ...(this.random.chance(0.2) ? { maxDurationSeconds: 4 } : {}) };
    const idempotencyKey = this.random.text();
    for (let n = 0; n < TRIES; n += 1) {
      const answer = await this.call('POST', `/v1/rooms/${roomId}/recordings`, { body, idempotencyKey });
      if (answer.status === 202) {
        const id = String(answer.body.id);
        this.known.recordings?.add(id);
        return id;
      }
      await delay(AGAIN_MS);
    }
    return null;
  }
}
