import type { Sent } from '../client.js';
import type { KnownTenant } from '../fleet/operator.js';
import type { Random } from '../random.js';
import type { Calls, Joining } from './calls.js';
import type { Answer, Caller, Sender } from './caller.js';

/** Shared by the callers of all tenants. */
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
  /** The paths of the removals and moves that were accepted. */
  operations: Set<string>;
  participants: Map<string, string>;
  /** Null if nothing is recorded. */
  recordings: Set<string> | null;
}

/** One sequential caller of a tenant. */
export abstract class Load {
  readonly #from: Sender;

  constructor(
    protected readonly shared: Shared,
    protected readonly tenant: KnownTenant,
    protected readonly known: Known,
    protected readonly random: Random,
    name: string,
  ) {
    this.#from = { tenant: tenant.name, key: tenant.key, client: name };
  }

  protected call(method: string, path: string, sent?: Sent): Promise<Answer> {
    return this.shared.caller.call(this.#from, method, path, sent);
  }

  protected insist(method: string, path: string, sent?: Sent): Promise<Answer | null> {
    return this.shared.caller.insist(this.#from, method, path, sent);
  }

  /** @returns its id. */
  protected async newRoom(body: object, idempotencyKey: string): Promise<string | null> {
    const created = await this.insist('POST', '/v1/rooms', { body, idempotencyKey });
    if (created?.status !== 201) return null;
    const roomId = String(created.body.id);
    this.known.rooms.add(roomId);
    return roomId;
  }

  /** @param who.region from which its media server is chosen, if it names one. */
  protected async invite(
    roomId: string,
    participantName: string,
    who: { permissions: string[]; region?: string | undefined },
  ): Promise<Joining | null> {
    const issued = await this.insist('POST', `/v1/rooms/${roomId}/tokens`, { body: { participantName, ...who } });
    if (issued?.status !== 201) return null;
    const { participantId = '', token = '' } = issued.body;
    this.known.participants.set(participantId, roomId);
    return { tenant: this.tenant.name, roomId, participantId, token };
  }

  /** @returns whether the removal was accepted. */
  protected async remove({ roomId, participantId }: Joining, sent: Sent): Promise<boolean> {
    const path = `/v1/rooms/${roomId}/participants/${participantId}`;
    const removed = await this.insist('DELETE', path, sent);
    const isAccepted = [202, 204].includes(removed?.status ?? 0);
    if (isAccepted) this.known.operations.add(`${path}/runtime-operation`);
    return isAccepted;
  }
}
