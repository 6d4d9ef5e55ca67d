import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import { WebSocket } from 'ws';
import { connect, type Call, type ConnectOptions, type Platform } from '@callplane/client-js';
import { eventually } from '@callplane/testing';

const PERMISSIONS = ['room:join', 'audio:publish', 'video:publish', 'messages:send', 'metadata:update'];
const GIVE_UP_MS = 60_000;

/** Clients and callers behind one load balancer, with a record of their results. Close it in `afterAll`. */
export class Load {
  /** Number of responses of the load balancer by status. */
  readonly statuses = new Map<number, number>();
  /** Rooms whose creation returned 201. */
  readonly rooms: string[] = [];
  /** Unexpected errors. */
  readonly failures: string[] = [];
  /** Sessions whose clients got a welcome, by id. */
  readonly sessionIds = new Set<string>();
  resumed = 0;
  #stopping = false;
  readonly #closing = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  /** Calls that are still open. */
  readonly #calls = new Set<Call>();
  readonly #url: string;
  readonly #key: string;

  constructor(target: { url: string; key: string }) {
    [this.#url, this.#key] = [target.url, target.key];
  }

  get requests(): number {
    return [...this.statuses.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Sends one request without retries. */
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

  /** Repeats a request, as a careful caller does, while the load balancer reports an unavailable instance. */
  async insist(method: string, path: string, body?: object): Promise<any> {
    const headers = method === 'POST' && path === '/v1/rooms' ? { 'idempotency-key': randomUUID() } : {};
    for (;;) {
      this.#closing.signal.throwIfAborted();
      const answer = await this.call(method, path, body, headers);
      if (answer.status < 300) return answer.body;
      const { code } = answer.body?.error ?? {};
      // The instance that claimed this idempotency key is gone, and its claim lasts longer than a caller would wait.
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

  /** Joins a participant with the SDK; without `platform` it has no media. */
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
      signal: this.#closing.signal,
      platform: { WebSocket: WebSocket, ...platform },
      ...media,
    });
    this.sessionIds.add(call.sessionId);
    this.#calls.add(call);
    call.on('closed', () => this.#calls.delete(call));
    call.on('state', (state) => {
      if (state === 'connected') this.resumed += 1;
    });
    return call;
  }

  /**
   * Sends one message to all others. Delivery is at most once, so a client that is losing its gateway may be refused.
   */
  async say(call: Call, data: unknown): Promise<void> {
    try {
      await call.send(data);
    } catch (error) {
      const { code } = error as { code?: string };
      if (!['unavailable', 'connection_lost', 'no_answer'].includes(code ?? '')) throw error;
    }
  }

  /** Runs rooms one after the other, in `places` loops at once, until `stop`. */
  start(places: number): Promise<unknown> {
    this.#running = Promise.all(
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
    return this.#running;
  }

  stop(): void {
    this.#stopping = true;
  }

  /** Leaves all calls, and ends the rooms of a test that has failed: the SDK cannot load code after the test file. */
  async close(): Promise<void> {
    this.stop();
    this.#closing.abort();
    await Promise.all([...this.#calls].map((call) => call.leave()));
    await this.#running;
  }

  /** Runs one room: participants join, talk, leave or are removed, and the room ends. */
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

/**
 * Waits for the close reason. If the gateway dies before it can send it, the next one reports invalid_session instead.
 */
async function closedAs(call: Call, reason: string): Promise<void> {
  await eventually(() => call.closeInfo !== undefined, { timeoutMs: GIVE_UP_MS });
  if (![reason, 'invalid_session'].includes(call.closeInfo!.reason)) {
    throw new Error(`closed as ${call.closeInfo!.reason} and not as ${reason}`);
  }
}
