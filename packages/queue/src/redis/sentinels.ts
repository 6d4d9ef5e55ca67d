import { Redis } from 'ioredis';
import { connectorOf } from './connector.js';
import { textOf, type RedisAddress, type RedisTarget } from './redis-target.js';

export type SentinelTarget = Extract<RedisTarget, { kind: 'sentinel' }>;

/** How long one Sentinel may take to connect, and to answer, in milliseconds. */
const ANSWER_MS = 1000;

/**
 * Asks all Sentinels for the master, and takes the first answer: a frozen Sentinel costs nothing. One that has missed a
 * promotion names a server that is no master any more. The connection then asks again.
 * @throws the error of a Sentinel if none answers.
 */
export async function masterOf(target: SentinelTarget): Promise<RedisAddress> {
  const answers = target.sentinels.map(async (sentinel) => {
    const { ip: host = '', port } = fieldsOf(await askSentinel(target, sentinel, 'MASTER'));
    return { host, port: Number(port) };
  });
  try {
    return await Promise.any(answers);
  } catch (error) {
    throw (error as AggregateError).errors.at(-1);
  }
}

/**
 * Runs one command at a Sentinel, over its own connection.
 * @throws an error that keeps the beginning of a reply such as WRONGPASS and the code of a system error: the trouble is
 *   derived from them.
 */
export async function askSentinel(target: SentinelTarget, sentinel: RedisAddress, command: string): Promise<unknown> {
  const { master, sentinelCredentials, tls } = target;
  const redis = new Redis({
    ...sentinelCredentials,
    protocol: 2,
    enableReadyCheck: false,
    disableClientInfo: true,
    connectTimeout: ANSWER_MS,
    commandTimeout: ANSWER_MS,
    ...(tls === null ? {} : { tls: { ...tls } }),
    Connector: connectorOf(() => Promise.resolve(sentinel), tls),
    lazyConnect: true,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
  });
  let refusal: NodeJS.ErrnoException | undefined;
  redis.on('error', (error) => {
    refusal = error;
  });
  try {
    await redis.connect();
    return await redis.call('SENTINEL', command, master);
  } catch (thrown) {
    const cause = refusal ?? (thrown as NodeJS.ErrnoException);
    const { message, code } = cause;
    const error = new Error(`${message} (Sentinel ${textOf(sentinel)} for master ${master})`, { cause });
    throw Object.assign(error, { syscall: 'connect', ...(code === undefined ? {} : { code }) });
  } finally {
    redis.disconnect();
  }
}

export function fieldsOf(reply: unknown): Record<string, string> {
  const list = Array.isArray(reply) ? reply.map(String) : [];
  return Object.fromEntries(list.flatMap((name, n) => (n % 2 === 0 ? [[name, list[n + 1] ?? '']] : [])));
}
