import { Redis, type RedisOptions } from 'ioredis';
import { connectorOf, type Follower, type Guide } from './connector.js';
import { reconnectDelayMs } from './reconnect-delay.js';
import { textOf, type RedisAddress, type RedisCredentials, type RedisTarget } from './redis-target.js';

/** Replies keep the shapes of RESP2, which the type of a connection states. */
export type ConnectionOptions = Omit<RedisOptions, 'replyMapping'>;

export type SentinelTarget = Extract<RedisTarget, { kind: 'sentinel' }>;

/** How long one Sentinel may take to connect and to answer, in milliseconds. */
const ANSWER_MS = 1000;
/** How long the finder waits for further answers after the first one, in milliseconds. A frozen Sentinel sends none. */
const FURTHER_ANSWERS_MS = 200;
/** How long a connection that this process ends may stay half open, in milliseconds. */
const DISCONNECT_MS = 100;
/** Interval of the pings on a subscription, and the silence after which it is replaced, in milliseconds. */
const PING_MS = 5000;

/** What one Sentinel says about the master. */
interface Answer {
  address: RedisAddress;
  /** Grows with every promotion. A Sentinel that does not know the latest one has a lower number. */
  epoch: number;
}

/**
 * Finds the master through Sentinels, and tells connections that follow it when another server is promoted. One object
 * serves all connections of a process to the same master.
 */
export class MasterFinder implements Guide {
  readonly followers = new Set<Follower>();
  readonly #target: SentinelTarget;
  readonly #subscriptions: Redis[];
  readonly #pings: NodeJS.Timeout;
  #asking: Promise<RedisAddress> | undefined;
  #isClosed = false;

  constructor(target: SentinelTarget) {
    this.#target = target;
    this.#subscriptions = target.sentinels.map((sentinel) => this.#subscribe(sentinel));
    this.#pings = setInterval(() => {
      for (const redis of this.#subscriptions) if (redis.status === 'ready') redis.ping().catch(() => undefined);
    }, PING_MS).unref();
  }

  /**
   * Asks all Sentinels. Concurrent callers share one question.
   * @throws Error of a Sentinel if none names the master.
   */
  find(): Promise<RedisAddress> {
    this.#asking ??= askForMaster(this.#target).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  accepts({ role }: Record<string, string>): boolean {
    return role === undefined || role === 'master';
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#pings);
    for (const redis of this.#subscriptions) redis.disconnect();
  }

  #subscribe(sentinel: RedisAddress): Redis {
    const redis = new Redis({
      ...sentinelOptions(this.#target, sentinel),
      maxRetriesPerRequest: null,
      socketTimeout: PING_MS,
      retryStrategy: reconnectDelayMs,
    });
    redis.on('error', () => undefined);
    // A promotion may have happened while this subscription was away.
    redis.on('ready', () => void this.#follow());
    redis.on('message', (_channel: string, message: string) => {
      if (message.split(' ')[0] === this.#target.master) void this.#follow();
    });
    redis.subscribe('+switch-master').catch(() => undefined);
    return redis;
  }

  async #follow(): Promise<void> {
    // An answer to an earlier question may be older than the promotion.
    await this.#asking?.catch(() => undefined);
    if (this.#isClosed || this.followers.size === 0) return;
    const master = await this.find().catch(() => null);
    if (master !== null) for (const follower of [...this.followers]) follower.leave(master);
  }
}

/** Options of a connection to a Sentinel. */
function sentinelOptions(target: SentinelTarget, { host, port }: RedisAddress): ConnectionOptions {
  return {
    host,
    port,
    ...credentialsOf(target.sentinelCredentials),
    ...(target.tls === null ? {} : { tls: { ...target.tls } }),
    protocol: 2,
    enableReadyCheck: false,
    disableClientInfo: true,
    connectTimeout: ANSWER_MS,
    Connector: connectorOf(null, target.tls, DISCONNECT_MS),
  };
}

export function credentialsOf({
  username,
  password,
}: RedisCredentials): Pick<ConnectionOptions, 'username' | 'password'> {
  return { ...(username === undefined ? {} : { username }), ...(password === undefined ? {} : { password }) };
}

/** Runs one command at a Sentinel, over its own connection. */
export async function askSentinel(target: SentinelTarget, sentinel: RedisAddress, command: string): Promise<unknown> {
  const redis = new Redis({
    ...sentinelOptions(target, sentinel),
    lazyConnect: true,
    retryStrategy: null,
    commandTimeout: ANSWER_MS,
    maxRetriesPerRequest: 0,
  });
  let refusal: Error | undefined;
  redis.on('error', (error) => {
    refusal = error;
  });
  try {
    await redis.connect();
    return await redis.call('SENTINEL', command, target.master);
  } catch (error) {
    throw refusal ?? error;
  } finally {
    redis.disconnect();
  }
}

/** The fields of a reply that lists names and values. */
export function fieldsOf(reply: unknown): Record<string, string> {
  const list = Array.isArray(reply) ? reply.map(String) : [];
  return Object.fromEntries(
    Array.from({ length: Math.floor(list.length / 2) }, (_, n) => [list[2 * n] ?? '', list[2 * n + 1] ?? '']),
  );
}

/** The most recent answer of all Sentinels that answer in time. */
function askForMaster(target: SentinelTarget): Promise<RedisAddress> {
  return new Promise((resolve, reject) => {
    let best: Answer | null = null;
    let failure: Error | null = null;
    let open = target.sentinels.length;
    let timer: NodeJS.Timeout | undefined;
    const finish = (): void => {
      clearTimeout(timer);
      if (best !== null) resolve(best.address);
      else reject(failure ?? new Error('no Sentinel is configured'));
    };
    for (const sentinel of target.sentinels) {
      askSentinel(target, sentinel, 'MASTER')
        .then((reply) => {
          const { ip: host = '', port, 'config-epoch': epoch } = fieldsOf(reply);
          const answer = { address: { host, port: Number(port) }, epoch: Number(epoch) };
          if (best === null || answer.epoch > best.epoch) best = answer;
          timer ??= setTimeout(finish, FURTHER_ANSWERS_MS);
        })
        .catch((error: unknown) => {
          failure = noMaster(target, sentinel, error as Error);
        })
        .finally(() => {
          open -= 1;
          if (open === 0) finish();
        });
    }
  });
}

/** Keeps the beginning of a reply such as WRONGPASS and the code of a system error, from which the trouble is derived. */
function noMaster({ master }: SentinelTarget, sentinel: RedisAddress, error: NodeJS.ErrnoException): Error {
  const { message, code } = error;
  const where = `Sentinel ${textOf(sentinel)} for master ${master}`;
  return Object.assign(new Error(`${message} (${where})`, { cause: error }), {
    syscall: 'connect',
    ...(code === undefined ? {} : { code }),
  });
}
