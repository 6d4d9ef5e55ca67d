import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '@callplane/client-js';
import type { Joining } from './calls.js';
import { Load } from './load.js';
import { Peers, startTone } from './peers.js';

const PERMISSIONS = ['room:join', 'audio:publish'];
/** Packets after which media flows. */
const FLOWING = 20;
const FLOWS_WITHIN_MS = 15_000;
/** How long an operation, and the media after it, are watched, in milliseconds. */
const COMPLETED_WITHIN_MS = 60_000;
const WATCHED_MS = 4000;
const LOOK_EVERY_MS = 250;
const PAUSE_MS = 500;

/**
 * Rooms of one tenant with media: a participant who speaks and one who listens, until one of them is removed or the room
 * is ended. Their peer connections stay open then.
 */
export class MediaLoop extends Load {
  async run(): Promise<void> {
    while (!this.shared.isOver()) {
      await this.#meet();
      await delay(PAUSE_MS);
    }
  }

  async #meet(): Promise<void> {
    const { random, shared } = this;
    const roomId = await this.newRoom({ name: `Media ${random.text()}`, maxParticipants: 2 }, random.text());
    if (roomId === null) return;
    const peers = new Peers(shared.calls.history, random.chance(0.5));
    const tone = startTone();
    const calls: Call[] = [];
    try {
      const speaker = await this.invite(roomId, 'Speaker', PERMISSIONS);
      const listener = await this.invite(roomId, 'Listener', PERMISSIONS);
      if (speaker === null || listener === null) return;
      for (const one of [speaker, listener]) {
        const call = await shared.calls.join(one, (name) => peers.classFor(one, name));
        if (call !== null) calls.push(call);
      }
      await calls[0]?.publish(tone.track, { source: 'microphone' }).catch(() => undefined);
      await until(() => peers.receivedBy(listener.participantId) > FLOWING, FLOWS_WITHIN_MS);
      await this.#cutOff(roomId, random.pick([speaker, listener, null]));
      await delay(WATCHED_MS);
    } finally {
      tone.stop();
      peers.close();
      await this.insist('DELETE', `/v1/rooms/${roomId}`);
      await Promise.all(calls.map((call) => call.leave()));
    }
  }

  /** Removes a participant, or ends the room, and waits until that has completed. */
  async #cutOff(roomId: string, who: Joining | null): Promise<void> {
    const path = who === null ? `/v1/rooms/${roomId}` : `/v1/rooms/${roomId}/participants/${who.participantId}`;
    const sent = { prefer: this.random.pick(['respond-async', 'wait=3']) };
    const isEnded = async (): Promise<boolean> => ((await this.insist('DELETE', path, sent))?.status ?? 500) < 300;
    if (!(await (who === null ? isEnded() : this.remove(who, sent)))) return;
    const untilMs = performance.now() + COMPLETED_WITHIN_MS;
    while (performance.now() < untilMs) {
      const { body } = await this.call('GET', `${path}/runtime-operation`);
      if (body.status === 'completed') return;
      await delay(LOOK_EVERY_MS);
    }
  }
}

async function until(isReached: () => boolean, withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (!isReached() && performance.now() < untilMs) await delay(LOOK_EVERY_MS);
}
