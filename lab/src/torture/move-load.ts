import { setTimeout as delay } from 'node:timers/promises';
import { Load } from './load.js';

const PEOPLE_MAX = 3;
const WATCHED_MS = { min: 0, max: 3000 };

/** Pairs of rooms of one tenant. Everybody who joins the first one is moved to the other. */
export class MoveLoop extends Load {
  async run(): Promise<void> {
    while (!this.shared.isOver()) await this.#meet();
  }

  async #meet(): Promise<void> {
    const { random, shared } = this;
    const room = { name: `Moved ${random.text()}`, maxParticipants: PEOPLE_MAX };
    const from = await this.newRoom(room, random.text());
    const to = await this.newRoom(room, random.text());
    if (from === null || to === null) return;
    const calls = [];
    for (let n = random.between(1, PEOPLE_MAX); n > 0; n -= 1) {
      const one = await this.invite(from, `Traveller ${n}`, { permissions: ['room:join'] });
      const call = one === null ? null : await shared.calls.join(one);
      if (one === null || call === null) continue;
      calls.push(call);
      const path = `/v1/rooms/${from}/participants/${one.participantId}/move`;
      const moved = await this.insist('POST', path, { body: { roomId: to }, idempotencyKey: random.text() });
      if (moved?.status === 202) this.known.operations.add(path);
    }
    await delay(random.between(WATCHED_MS.min, WATCHED_MS.max));
    // A call that joins again after a loss would do so in the other room.
    await Promise.all(calls.map((call) => call.leave()));
    for (const roomId of [from, to]) await this.insist('DELETE', `/v1/rooms/${roomId}`);
  }
}
