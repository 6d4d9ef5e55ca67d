import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '@callplane/client-js';
import type { Joining } from './calls.js';
import type { Answer, Sender, Sent } from './client.js';
import type { KnownTenant } from './fleet.js';
import { Peers, startTone } from './peers.js';
import type { Random } from './random.js';
import type { Known, Shared } from './tenant-load.js';

const PERMISSIONS = ['room:join', 'audio:publish'];
/** Packets after which media flows. */
const FLOWING = 20;
const FLOWS_WITHIN_MS = 15_000;
/** How long an operation is watched, and what is relayed after it, in milliseconds. */
const COMPLETED_WITHIN_MS = 60_000;
const WATCHED_MS = 4000;
const LOOK_EVERY_MS = 250;
const PAUSE_MS = 500;

/**
 * Rooms of one tenant with media: a participant who speaks and one who listens, until one of them is removed or the room
 * is ended. Their peer connections stay open then.
 */
export class MediaLoop {
  readonly #from: Sender;

  constructor(
    private readonly shared: Shared,
    private readonly tenant: KnownTenant,
    private readonly known: Known,
    private readonly random: Random,
    name: string,
  ) {
    this.#from = { tenant: tenant.name, key: tenant.key, client: name };
  }

  async run(): Promise<void> {
    while (!this.shared.isOver()) {
      await this.#meet();
      await delay(PAUSE_MS);
    }
  }

  async #meet(): Promise<void> {
    const { random, shared, known } = this;
    const body = { name: `Media ${random.text()}`, maxParticipants: 2 };
    const created = await this.#insist('POST', '/v1/rooms', { body, idempotencyKey: random.text() });
    if (created?.status !== 201) return;
    const roomId = String(created.body.id);
    known.rooms.add(roomId);
    const peers = new Peers(shared.calls.history, random.chance(0.5));
    const tone = startTone();
    const calls: Call[] = [];
    try {
      const [speaker, listener] = [await this.#invite(roomId, 'Speaker'), await this.#invite(roomId, 'Listener')];
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
      await this.#insist('DELETE', `/v1/rooms/${roomId}`, {});
      await Promise.all(calls.map((call) => call.leave()));
    }
  }

  /** Removes a participant, or ends the room, and waits until that has completed. */
  async #cutOff(roomId: string, who: Joining | null): Promise<void> {
    const path = who === null ? `/v1/rooms/${roomId}` : `/v1/rooms/${roomId}/participants/${who.participantId}`;
    const prefer = this.random.pick(['respond-async', 'wait=3']);
    const accepted = await this.#insist('DELETE', path, { prefer });
    if (accepted === null || accepted.status === null || accepted.status >= 300) return;
    if (who !== null) this.known.removals.set(who.participantId, roomId);
    const untilMs = performance.now() + COMPLETED_WITHIN_MS;
    while (performance.now() < untilMs) {
      const { body } = await this.shared.caller.call(this.#from, 'GET', `${path}/runtime-operation`);
      if (body.status === 'completed') return;
      await delay(LOOK_EVERY_MS);
    }
  }

  async #invite(roomId: string, participantName: string): Promise<Joining | null> {
    const body = { participantName, permissions: PERMISSIONS };
    const issued = await this.#insist('POST', `/v1/rooms/${roomId}/tokens`, { body });
    if (issued?.status !== 201) return null;
    const { participantId = '', token = '' } = issued.body;
    this.known.participants.set(participantId, roomId);
    return { tenant: this.tenant.name, roomId, participantId, token };
  }

  #insist(method: string, path: string, sent: Sent): Promise<Answer | null> {
    return this.shared.caller.insist(this.#from, method, path, sent);
  }
}

async function until(isReached: () => boolean, withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (!isReached() && performance.now() < untilMs) await delay(LOOK_EVERY_MS);
}
