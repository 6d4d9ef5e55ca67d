import { setTimeout as delay } from 'node:timers/promises';
import { SCOPES, type Caller, type Tenant } from '@callplane/core';
import { eraseEvents, requestErasure, type Database } from '@callplane/db';
import type { ApiAnswer, ApiRequest } from './apps/api.js';
import { openDatabase } from './apps/tasks.js';
import type { Fleet, Instance } from './fleet.js';
import { Participants, type Person } from './participants.js';
import type { Action, EndpointAction, RoomAction } from './plan.js';
import { running, type SimProcess } from './processes.js';
import type { Random } from '../src/random.js';
import type { Customers } from './setup.js';

/** How often a client repeats a request, and its pause, in milliseconds. */
const TRIES_MAX = 40;
const PAUSE_MS = 1000;

/** It ends by itself before the run does. */
const RECORD = { mode: 'tracks', maxDurationSeconds: 20 };

export interface KnownRoom {
  readonly name: string;
  readonly tenant: number;
  /** Ids of all answers 201. */
  readonly ids: string[];
  /** Recordings of all answers 202. */
  readonly recordings: Set<string>;
  /** How many were asked for, by requests and by the option of the room. */
  recordingsMax: number;
  endAcceptedAtMs?: number;
  readonly people: Map<number, Person>;
}

export interface KnownDelivery {
  readonly id: string;
  readonly endpointId: string;
  readonly replayCount: number;
}

/** An operator with `rtc` and the database. */
export class Operator {
  readonly #database: Database;

  constructor(
    private readonly process: SimProcess,
    databaseUrl: string,
  ) {
    this.#database = running.run(process, () => openDatabase(databaseUrl));
  }

  /** As `rtc participants erase` does. The operator may be told that PostgreSQL is busy, and tries no further. */
  erase(participantId: string): Promise<void> {
    return running.run(this.process, async () => {
      const now = new Date();
      const outcome = await requestErasure(this.#database, participantId, now).catch(() => null);
      if (outcome === null || typeof outcome === 'string') return;
      while ((await eraseEvents(this.#database, participantId, now).catch(() => 0)) > 0);
    });
  }
}

/** The clients of the API and of the gateways, and their observations. They never fail. */
export class Clients {
  readonly rooms = new Map<number, KnownRoom>();
  readonly participants: Participants;
  readonly problems: string[] = [];
  pending = 0;
  /** Deliveries whose next attempt was brought forward, and endpoints of which any delivery may have been. */
  readonly hastened = new Set<string>();

  constructor(
    private readonly fleet: Fleet,
    private readonly process: SimProcess,
    private readonly customers: Customers,
    private readonly operator: Operator,
    private readonly random: Random,
    /** Of a tenant. */
    private readonly listDeliveries: (tenant: number) => Promise<KnownDelivery[]>,
  ) {
    const receive = customers.regions.length > 0;
    this.participants = new Participants(fleet, process, random, receive, (person) => void this.#publish(person));
  }

  perform(action: Action): void {
    this.pending += 1;
    running.run(this.process, () => {
      this.#do(action)
        .catch((error: unknown) => this.problems.push(`client fails: ${String((error as Error).stack)}`))
        .finally(() => (this.pending -= 1));
    });
  }

  interfere(participantId: string, what: 'end' | 'remove'): void {
    const atMs = this.fleet.world.nowMsValue;
    for (const [room, { people }] of this.rooms)
      for (const [who, person] of people) {
        if (person.participantId !== participantId) continue;
        this.perform(what === 'end' ? { atMs, room, do: 'end' } : { atMs, room, who, do: 'remove' });
      }
  }

  /** Asks once more for every end and removal that was accepted: one whose operation has failed gets another run. */
  repeatEnds(): void {
    const atMs = this.fleet.world.nowMsValue;
    for (const [room, { endAcceptedAtMs, people }] of this.rooms) {
      if (endAcceptedAtMs !== undefined) this.perform({ atMs, room, do: 'end' });
      for (const [who, { removedAtMs }] of people)
        if (removedAtMs !== undefined) this.perform({ atMs, room, who, do: 'remove' });
    }
  }

  async #do(action: Action): Promise<void> {
    if ('endpoint' in action) {
      const endpoint = this.customers.endpoints[action.endpoint];
      if (endpoint === undefined) return;
      if (action.do === 'recover') this.hastened.add(endpoint.id);
      const caller = this.#caller(endpoint.tenant);
      return this.#actOnEndpoint(action, endpoint.id, caller);
    }
    if (action.do === 'create') return this.#create(action);
    const room = await this.#known(action.room);
    const roomId = room?.ids[0];
    if (room === undefined || roomId === undefined) return;
    const caller = this.#caller(room.tenant);
    if (action.do === 'update') {
      const body = { metadata: { v: action.atMs } };
      await this.#ask({ operationId: 'updateRoom', caller, params: { roomId }, body });
    } else if (action.do === 'end') {
      const answer = await this.#insist({ operationId: 'endRoom', caller, params: { roomId } });
      if (answer !== null && answer.status < 300) room.endAcceptedAtMs ??= this.fleet.world.nowMsValue;
    } else if (action.do === 'record') {
      room.recordingsMax += 1;
      const request = { caller, params: { roomId }, body: RECORD, idempotencyKey: `record ${roomId} ${action.atMs}` };
      const answer = await this.#insist({ ...request, operationId: 'startRecording' });
      if (answer?.status === 202) room.recordings.add(String(answer.body['id']));
    } else if (action.do === 'stop recordings') {
      for (const recordingId of room.recordings)
        await this.#insist({ operationId: 'stopRecording', caller, params: { recordingId } });
    } else if (action.do === 'replay' || action.do === 'retry') await this.#again(room.tenant, action.do);
    else if ('who' in action) await this.#moveAPerson(action, room, roomId);
  }

  async #actOnEndpoint(action: EndpointAction, endpointId: string, caller: Caller): Promise<void> {
    const request = { caller, params: { endpointId } };
    if (action.do === 'pause') {
      await this.#insist({ ...request, operationId: 'updateWebhook', body: { enabled: false } });
      await delay(action.forMs);
      await this.#insist({ ...request, operationId: 'updateWebhook', body: { enabled: true } });
    } else if (action.do === 'recover') {
      const since = new Date(Date.now() - 3_600_000).toISOString();
      const body = { since, includePending: true, dryRun: false };
      await this.#insist({ ...request, operationId: 'createRecovery', body });
    } else {
      const operationId = action.do === 'rotate' ? 'rotateWebhookSecret' : 'deleteWebhook';
      await this.#insist({ ...request, operationId });
    }
  }

  async #create(action: RoomAction & { do: 'create' }): Promise<void> {
    const name = `room ${action.room}`;
    const recordingsMax = action.isRecorded === true ? 1 : 0;
    const none = { ids: [], recordings: new Set<string>(), people: new Map<number, Person>() };
    const room: KnownRoom = { name, tenant: action.tenant, recordingsMax, ...none };
    this.rooms.set(action.room, room);
    const request: ApiRequest = {
      operationId: 'createRoom',
      caller: this.#caller(action.tenant),
      body: { name, maxParticipants: action.maxParticipants, ...(action.isRecorded === true && { record: RECORD }) },
      idempotencyKey: action.isKeyed ? `key ${action.room}` : null,
    };
    const create = async (): Promise<void> => {
      const answer = action.isKeyed ? await this.#insist(request) : await this.#ask(request);
      if (answer?.status === 201) room.ids.push(String(answer.body['id']));
    };
    await Promise.all(action.isRepeated ? [create(), create()] : [create()]);
  }

  async #moveAPerson(action: Extract<RoomAction, { who: number }>, room: KnownRoom, roomId: string): Promise<void> {
    if (action.do === 'join') return this.#join(room, roomId, action);
    const person = room.people.get(action.who);
    if (person?.participantId === undefined) return;
    const { participantId, sessionId } = person;
    const request = { caller: this.#caller(room.tenant), params: { roomId, participantId } };
    if (action.do === 'remove') {
      const answer = await this.#insist({ ...request, operationId: 'removeParticipant' });
      if (answer !== null && answer.status < 300) person.removedAtMs ??= this.fleet.world.nowMsValue;
      return;
    }
    if (action.do === 'erase') return this.operator.erase(participantId);
    if (action.do === 'move') {
      const to = this.rooms.get(action.to);
      if (to === undefined || to === room || to.ids[0] === undefined || to.tenant !== room.tenant) return;
      await this.#insist({ ...request, operationId: 'moveParticipant', body: { roomId: to.ids[0] } });
      return;
    }
    if (action.do === 'permit') {
      const body = { permissions: ['room:join', 'audio:publish', 'video:publish'] };
      await this.#ask({ ...request, operationId: 'updateParticipant', body });
      return;
    }
    if (sessionId === undefined) return;
    if (action.do === 'resume') await this.participants.resume(person);
    else if (action.do === 'leave') this.participants.leave(person);
    else if (action.do === 'lose') this.participants.lose(person);
    else await this.#publish(person);
  }

  async #publish(person: Person): Promise<void> {
    const { sessionId = '' } = person;
    const holder = this.participants.holderOf(sessionId);
    const { gateway } = holder ?? {};
    if (holder === undefined || gateway === undefined) return;
    person.publishes = true;
    await this.#reach(holder, `publishes ${sessionId}`, () => gateway.publish(sessionId)).catch(() => null);
  }

  async #join(room: KnownRoom, roomId: string, { who, staysAway }: RoomAction & { do: 'join' }): Promise<void> {
    const person = room.people.get(who) ?? {};
    room.people.set(who, person);
    if (staysAway === true) person.staysAway = true;
    if (person.participantId === undefined) {
      const region = this.customers.regions[who % 2];
      const named = { participantName: `person ${who}`, ...(region !== undefined && { region }) };
      const body = { ...named, permissions: ['room:join', 'audio:publish'] };
      const caller = this.#caller(room.tenant);
      const answer = await this.#ask({ operationId: 'issueToken', caller, params: { roomId }, body });
      if (answer?.status !== 201) return;
      const token = String(answer.body['token']);
      const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { sub: string };
      Object.assign(person, { participantId: claims.sub, token });
    }
    await this.participants.join(roomId, person);
  }

  async #again(tenant: number, what: 'replay' | 'retry'): Promise<void> {
    const deliveries = await new Promise<KnownDelivery[]>((resolve) =>
      this.fleet.world.after(0, null, 'a client lists deliveries', async () =>
        resolve(await this.listDeliveries(tenant)),
      ),
    );
    if (deliveries.length === 0) return;
    const { id, endpointId, replayCount } = this.random.pick(deliveries);
    const request = { caller: this.#caller(tenant), params: { endpointId, deliveryId: id } };
    if (what === 'retry') {
      // Also if the answer gets lost.
      this.hastened.add(id);
      await this.#ask({ ...request, operationId: 'retryDelivery' });
    } else {
      const body = { expectedReplayCount: replayCount };
      await this.#ask({ ...request, operationId: 'replayDelivery', body });
    }
  }

  async #known(index: number): Promise<KnownRoom | undefined> {
    for (let looks = 0; looks < 100; looks += 1) {
      const room = this.rooms.get(index);
      if (room !== undefined && room.ids.length > 0) return room;
      await delay(200);
    }
    return undefined;
  }

  #caller(tenant: number): Caller {
    return { ...(this.customers.tenants[tenant] as Tenant), keyId: 'key', keyType: 'secret', scopes: SCOPES };
  }

  /** Repeats a request until it is answered by more than "try again". */
  async #insist(request: ApiRequest): Promise<ApiAnswer | null> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const answer = await this.#ask(request);
      if (answer !== null && answer.status !== 503 && answer.code !== 'IDEMPOTENCY_CONFLICT') return answer;
      await delay(PAUSE_MS);
    }
    return null;
  }

  /** @returns null without an answer. */
  async #ask(request: ApiRequest): Promise<ApiAnswer | null> {
    const instance = this.#anyApi();
    const { api } = instance ?? {};
    if (instance === undefined || api === undefined) return null;
    const answer = await this.#reach(instance, `handles ${request.operationId}`, () => api.handle(request));
    if (answer?.status === 500) {
      const { cause } = answer;
      this.problems.push(`${request.operationId} is answered with 500: ${String((cause as Error).stack)}`);
    }
    return answer;
  }

  #anyApi(): Instance | undefined {
    const all = this.fleet.of('api');
    return all.length === 0 ? undefined : this.random.pick(all);
  }

  /** Runs work in a process. @returns null if the process dies before its answer has arrived. */
  #reach<T>(instance: Instance, what: string, work: () => Promise<T>): Promise<T | null> {
    const { process } = instance;
    return new Promise((resolve, reject) => {
      const answer = (label: string, run: () => void): void =>
        this.fleet.world.after(1, null, `${process.name} ${label}`, () => running.run(this.process, run));
      process.onDeath.push(() => answer('closes its connections', () => resolve(null)));
      this.fleet.world.after(1, process, what, () => {
        running.run(process, () => {
          work().then(
            (result) => answer(`answers: ${what}`, () => resolve(result)),
            (error: unknown) =>
              answer(`fails: ${what}`, () => reject(error instanceof Error ? error : new Error(String(error)))),
          );
        });
      });
    });
  }
}
