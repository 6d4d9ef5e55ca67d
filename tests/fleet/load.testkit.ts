import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import { WebSocket } from 'ws';
import { connect, type Call, type ConnectOptions, type Platform } from '@callplane/client-js';
import { eventually, stopAtEnd } from '@callplane/testing';

const PERMISSIONS = ['room:join', 'audio:publish', 'video:publish', 'messages:send', 'metadata:update'];
const GIVE_UP_MS = 30_000;

/** Clients and callers behind one load balancer, and what they saw. */
export class Load {
  /** Answers of the load balancer, by status. */
  readonly statuses = new Map<number, number>();
  /** Rooms whose making was answered with 201. */
  readonly rooms: string[] = [];
  /** What should not have happened. */
  readonly failures: string[] = [];
  readonly messages = { sent: 0, refused: 0, received: 0 };
  sessions = 0;
  resumed = 0;
  #stopping = false;
  /** Those that are not over. */
  readonly #calls = new Set<Call>();
  readonly #url: string;
  readonly #key: string;

  constructor(target: { url: string; key: string }) {
    [this.#url, this.#key] = [target.url, target.key];
    stopAtEnd(() => Promise.all([...this.#calls].map((call) => call.leave())));
  }

  get requests(): number {
    return [...this.statuses.values()].reduce((sum, count) => sum + count, 0);
  }

  /** One request, as it is. */
  async call(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(GIVE_UP_MS),
    });
    const text = await response.text();
    this.statuses.set(response.status, (this.statuses.get(response.status) ?? 0) + 1);
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    return { status: response.status, body: isJson && text !== '' ? JSON.parse(text) : null };
  }

  /** Repeats a request, as a careful caller does, while the load balancer says that the instance went away. */
  async insist(method: string, path: string, body?: object): Promise<any> {
    const headers = method === 'POST' && path === '/v1/rooms' ? { 'idempotency-key': randomUUID() } : {};
    for (;;) {
      const answer = await this.call(method, path, body, headers);
      if (answer.status < 300) return answer.body;
      const { code } = answer.body?.error ?? {};
      // The instance that began with this key is gone: its claim on the key lasts longer than a caller would wait.
      if (code === 'IDEMPOTENCY_CONFLICT') headers['idempotency-key'] = randomUUID();
      else if (answer.status < 500) throw new Error(`${method} ${path} answered ${answer.status} ${code}`);
      await delay(100);
    }
  }

  async newRoom(): Promise<string> {
    const { id } = await this.insist('POST', '/v1/rooms', { name: 'Fleet' });
    this.rooms.push(id);
    return id;
  }

  /** A participant that joins with the SDK; without `platform` it has no media. */
  async join(
    roomId: string,
    name: string,
    platform: Partial<Platform> = {},
    media: Pick<ConnectOptions, 'iceTransportPolicy'> = {},
  ): Promise<Call> {
    const { token } = await this.insist('POST', `/v1/rooms/${roomId}/tokens`, {
      participantName: name,
      permissions: PERMISSIONS,
    });
    const call = await connect({
      url: `${this.#url.replace('http', 'ws')}/v1/signaling`,
      token,
      connectTimeoutMs: GIVE_UP_MS,
      platform: { WebSocket: WebSocket, ...platform },
      ...media,
    });
    this.sessions += 1;
    this.#calls.add(call);
    call.on('closed', () => this.#calls.delete(call));
    call.on('message', () => (this.messages.received += 1));
    call.on('state', (state) => {
      if (state === 'connected') this.resumed += 1;
    });
    return call;
  }

  /** One message to all others. It is delivered at most once, so whoever loses its gateway just now may be refused. */
  async say(call: Call, data: unknown): Promise<void> {
    try {
      await call.send(data);
      this.messages.sent += 1;
    } catch (error) {
      const { code } = error as { code?: string };
      if (!['unavailable', 'connection_lost', 'no_answer'].includes(code ?? '')) throw error;
      this.messages.refused += 1;
    }
  }

  /** Rooms one after the other, in so many places at once, until it is stopped. */
  start(places: number): Promise<unknown> {
    return Promise.all(
      Array.from({ length: places }, async (_, place) => {
        for (let round = place; !this.#stopping; round += 1) {
          try {
            await this.#meet(round);
          } catch (error) {
            this.failures.push(inspect(error));
            if (this.failures.length > 20) return;
          }
        }
      }),
    );
  }

  stop(): void {
    this.#stopping = true;
  }

  /** The life of a room: people come, talk, go or are thrown out, and the room is ended. */
  async #meet(round: number): Promise<void> {
    const roomId = await this.newRoom();
    const join = (name: string) => this.join(roomId, name);
    const people = await Promise.all([join('Ada'), join('Bob'), join('Cem')]);
    const [ada, bob, cem] = people;
    for (let n = 0; n < 4; n += 1) {
      await this.say(people[n % people.length]!, { n });
      await delay(150);
    }
    await this.insist('GET', `/v1/rooms/${roomId}/participants?limit=10`);
    if (round % 2 === 0) {
      await this.insist('DELETE', `/v1/rooms/${roomId}/participants/${bob.participant.participantId}`);
      await closedAs(bob, 'removed');
    }
    if (round % 3 === 0) await cem.leave();
    await this.insist('GET', `/v1/events?roomId=${roomId}&limit=5`);
    await this.insist('DELETE', `/v1/rooms/${roomId}`);
    await closedAs(ada, 'room_ended');
  }
}

/** A client whose gateway dies as it is told is told by the next one that its session has ended. */
async function closedAs(call: Call, reason: string): Promise<void> {
  await eventually(() => call.closeInfo !== undefined, { timeoutMs: GIVE_UP_MS });
  if (![reason, 'invalid_session'].includes(call.closeInfo!.reason)) {
    throw new Error(`closed as ${call.closeInfo!.reason} and not as ${reason}`);
  }
}
