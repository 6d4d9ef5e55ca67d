import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '@callplane/client-js';
import type { Calls } from './calls.js';
import type { Answer, Caller, Sender, Sent } from './client.js';
import type { KnownTenant } from './fleet.js';
import type { Random } from './random.js';

const PERMISSIONS = ['room:join', 'messages:send', 'metadata:update'];
/** How long a client waits for the end of its call after its room has ended, in milliseconds. */
const ENDED_WITHIN_MS = 40_000;
/** Rooms that other tenants try to reach. */
const KNOWN_ROOMS_MAX = 50;

/** What the callers of all tenants share. */
export interface Shared {
  caller: Caller;
  calls: Calls;
  /** Rooms of all tenants, for requests with the key of another one. */
  rooms: { tenant: string; id: string }[];
  isOver: () => boolean;
}

/** Something that the final reads look at. */
export interface Known {
  rooms: Set<string>;
  /** By participant. */
  removals: Map<string, string>;
  participants: Map<string, string>;
}

interface Invited {
  participantId: string;
  token: string;
}

/** One sequential caller of a tenant, with the clients of its rooms. */
export class RoomLoop {
  readonly #from: Sender;
  /** Joins that should be refused, and that a room does not wait for. */
  readonly #late = new Set<Promise<unknown>>();

  constructor(
    private readonly shared: Shared,
    private readonly tenant: KnownTenant,
    private readonly known: Known,
    private readonly random: Random,
    name: string,
  ) {
    this.#from = { tenant: tenant.name, key: tenant.key, client: name };
  }

  /** Runs rooms one after the other until the load is over. */
  async run(): Promise<void> {
    while (!this.shared.isOver()) await this.#meet();
    await Promise.all(this.#late);
  }

  call(method: string, path: string, sent?: Sent): Promise<Answer> {
    return this.shared.caller.call(this.#from, method, path, sent);
  }

  #insist(method: string, path: string, sent?: Sent): Promise<Answer | null> {
    return this.shared.caller.insist(this.#from, method, path, sent);
  }

  async #meet(): Promise<void> {
    const { random, shared } = this;
    const maxParticipants = random.from(1, 4);
    const roomId = await this.#newRoom(maxParticipants);
    if (roomId === null) return;
    const invited: Invited[] = [];
    for (let n = random.from(1, maxParticipants + 2); n > 0; n -= 1) {
      const one = await this.#invite(roomId);
      if (one !== null) invited.push(one);
    }
    const join = ({ participantId, token }: Invited): Promise<Call | null> =>
      shared.calls.join({ tenant: this.tenant.name, roomId, participantId, token });
    const calls = (await Promise.all(invited.map(join))).filter((call) => call !== null);
    for (const call of calls)
      if (random.chance(0.5)) await call.send({ at: random.from(0, 99) }).catch(() => undefined);
    if (random.chance(0.15)) await this.#trespass();
    await this.call('GET', `/v1/rooms/${roomId}/participants?limit=100`);
    const somebody = invited.length > 0 ? random.pick(invited) : null;
    if (somebody !== null && random.chance(0.4)) {
      await this.#remove(roomId, somebody.participantId);
      // While the room is open: then nothing but the removal refuses the join.
      if (random.chance(0.5)) await (await join(somebody))?.leave();
    } else if (somebody !== null && random.chance(0.3)) {
      // A second join of a participant ends the session before it.
      const again = await join(somebody);
      if (again !== null) calls.push(again);
    }
    if (calls.length > 0 && random.chance(0.3)) await random.pick(calls).leave();
    await delay(random.from(0, 400));
    await this.#end(roomId, somebody);
    if (somebody !== null && random.chance(0.3)) this.#late.add(join(somebody).then((call) => call?.leave()));
    await ended(calls);
  }

  async #newRoom(maxParticipants: number): Promise<string | null> {
    const { random, shared, known, tenant } = this;
    const idempotencyKey = random.text();
    const body = { name: `Room ${random.text()}`, maxParticipants, metadata: { seed: random.seed } };
    const created = await this.#insist('POST', '/v1/rooms', { body, idempotencyKey });
    if (created?.status !== 201) return null;
    const roomId = String(created.body.id);
    known.rooms.add(roomId);
    shared.rooms.push({ tenant: tenant.name, id: roomId });
    if (shared.rooms.length > KNOWN_ROOMS_MAX) shared.rooms.shift();
    if (random.chance(0.2)) await this.call('POST', '/v1/rooms', { body, idempotencyKey });
    if (random.chance(0.1))
      await this.call('POST', '/v1/rooms', { body: { ...body, name: 'Another' }, idempotencyKey });
    return roomId;
  }

  async #invite(roomId: string): Promise<Invited | null> {
    const body = { participantName: `Person ${this.random.from(1, 999)}`, permissions: PERMISSIONS };
    const issued = await this.#insist('POST', `/v1/rooms/${roomId}/tokens`, { body });
    if (issued?.status !== 201) return null;
    const { participantId = '', token = '' } = issued.body;
    this.known.participants.set(participantId, roomId);
    return { participantId, token };
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

  async #remove(roomId: string, participantId: string): Promise<void> {
    const path = `/v1/rooms/${roomId}/participants/${participantId}`;
    const removed = await this.#insist('DELETE', path, this.#preference());
    if (removed !== null && [202, 204].includes(removed.status ?? 0)) this.known.removals.set(participantId, roomId);
    await this.call('GET', `${path}/runtime-operation`);
  }

  async #end(roomId: string, somebody: Invited | null): Promise<void> {
    await this.#insist('DELETE', `/v1/rooms/${roomId}`, this.#preference());
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
