import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '@callplane/client-js';
import type { Sent } from '../client.js';
import { REGIONS } from '../fleet/media-servers.js';
import type { Joining } from './calls.js';
import { Load } from './load.js';

const PERMISSIONS = ['room:join', 'messages:send', 'metadata:update'];
/** How long a client waits for the end of its call after its room has ended, in milliseconds. */
const ENDED_WITHIN_MS = 40_000;
/** Rooms that other tenants try to reach. */
const KNOWN_ROOMS_MAX = 50;

/** One sequential caller of a tenant, with the clients of its rooms. */
export class RoomLoop extends Load {
  /** Joins that should be refused, and that a room does not wait for. */
  readonly #late = new Set<Promise<unknown>>();

  /** Runs rooms one after the other until the load is over. */
  async run(): Promise<void> {
    while (!this.shared.isOver()) await this.#meet();
    await Promise.all(this.#late);
  }

  async #meet(): Promise<void> {
    const { random, shared } = this;
    const maxParticipants = random.between(1, 4);
    const roomId = await this.#openRoom(maxParticipants);
    if (roomId === null) return;
    const invited: Joining[] = [];
    for (let n = random.between(1, maxParticipants + 2); n > 0; n -= 1) {
      const who = { permissions: PERMISSIONS, region: random.pick([undefined, ...REGIONS]) };
      const one = await this.invite(roomId, `Person ${random.between(1, 999)}`, who);
      if (one !== null) invited.push(one);
    }
    const join = (one: Joining): Promise<Call | null> => shared.calls.join(one);
    const calls = (await Promise.all(invited.map(join))).filter((call) => call !== null);
    for (const call of calls)
      if (random.chance(0.5)) await call.send({ at: random.between(0, 99) }).catch(() => undefined);
    if (random.chance(0.15)) await this.#trespass();
    await this.call('GET', `/v1/rooms/${roomId}/participants?limit=100`);
    const somebody = invited.length > 0 ? random.pick(invited) : null;
    if (somebody !== null && random.chance(0.4)) {
      await this.remove(somebody, this.#preference());
      await this.call('GET', `/v1/rooms/${roomId}/participants/${somebody.participantId}/runtime-operation`);
      // While the room is open: then nothing but the removal refuses the join.
      if (random.chance(0.5)) await (await join(somebody))?.leave();
    } else if (somebody !== null && random.chance(0.3)) {
      // A second join of a participant ends the session before it.
      const again = await join(somebody);
      if (again !== null) calls.push(again);
    }
    if (calls.length > 0 && random.chance(0.3)) await random.pick(calls).leave();
    await delay(random.between(0, 400));
    await this.#end(roomId, somebody);
    if (somebody !== null && random.chance(0.3)) this.#late.add(join(somebody).then((call) => call?.leave()));
    await ended(calls);
  }

  async #openRoom(maxParticipants: number): Promise<string | null> {
    const { random, shared, tenant } = this;
    const idempotencyKey = random.text();
    const body = { name: `Room ${random.text()}`, maxParticipants, metadata: { seed: random.seed } };
    const roomId = await this.newRoom(body, idempotencyKey);
    if (roomId === null) return null;
    shared.rooms.push({ tenant: tenant.name, id: roomId });
    if (shared.rooms.length > KNOWN_ROOMS_MAX) shared.rooms.shift();
    if (random.chance(0.2)) await this.call('POST', '/v1/rooms', { body, idempotencyKey });
    if (random.chance(0.1))
      await this.call('POST', '/v1/rooms', { body: { ...body, name: 'Another' }, idempotencyKey });
    return roomId;
  }

  /** Asks for a room of another tenant. */
  async #trespass(): Promise<void> {
    const others = this.shared.rooms.filter(({ tenant }) => tenant !== this.tenant.name);
    if (others.length === 0) return;
    const { id } = this.random.pick(others);
    const method = this.random.pick(['GET', 'DELETE']);
    await this.call(method, `/v1/rooms/${id}`);
    await this.call('GET', `/v1/rooms/${id}/participants`);
  }

  async #end(roomId: string, somebody: Joining | null): Promise<void> {
    await this.insist('DELETE', `/v1/rooms/${roomId}`, this.#preference());
    if (this.random.chance(0.2)) await this.call('DELETE', `/v1/rooms/${roomId}`);
    if (this.random.chance(0.3)) {
      await this.call('POST', `/v1/rooms/${roomId}/tokens`, { body: { participantName: 'Late' } });
    }
    if (somebody !== null && this.random.chance(0.2)) {
      await this.call('GET', `/v1/rooms/${roomId}/participants/${somebody.participantId}`);
    }
    await this.call('GET', `/v1/rooms/${roomId}`);
  }

  #preference(): Sent {
    const prefer = this.random.pick([undefined, 'respond-async', 'wait=3']);
    return prefer === undefined ? {} : { prefer };
  }
}

async function ended(calls: readonly Call[]): Promise<void> {
  const over = calls.map(
    (call) =>
      new Promise<void>((resolve) => (call.closeInfo === undefined ? call.on('closed', () => resolve()) : resolve())),
  );
  await Promise.race([Promise.all(over), delay(ENDED_WITHIN_MS, undefined, { ref: false })]);
  await Promise.all(calls.map((call) => call.leave()));
}
