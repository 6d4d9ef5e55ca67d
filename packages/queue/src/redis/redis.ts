import { Cluster, Redis, type ClusterOptions } from 'ioredis';
import { connectorOf, inTurn } from './connector.js';
import { credentialsOf, MasterFinder, type ConnectionOptions, type SentinelTarget } from './master-finder.js';
import { reconnectDelayMs } from './reconnect-delay.js';
import { parseRedisUrl, type RedisLocation, type RedisTarget } from './redis-target.js';

/** A connection: to one Redis, to the master that Sentinels name, or to all nodes of a cluster. */
export type RedisClient = Redis | Cluster;

/** The role of a connection decides how it behaves while Redis is unavailable. */
export type RedisRole =
  /** Commands fail at once, because a request must not wait for Redis. */
  | 'command'
  /** Commands wait for Redis: a worker has nothing else to do, and a subscriber renews its subscriptions. */
  | 'blocking';

export interface RedisEvents {
  onLost(error: Error): void;
  onReady(): void;
}

/** How long one command may take on a `command` connection, in milliseconds. */
const COMMAND_DEADLINE_MS = 200;
/**
 * A connection is replaced if a command gets no answer for this long, in milliseconds. The address may lead to another
 * server by now, while the old one is frozen and keeps its connections open. `blocking` exceeds the 10 s that BullMQ
 * blocks.
 */
const SILENCE_MS: Record<RedisRole, number> = { command: 5000, blocking: 15_000 };

/** The server is not the master, or not yet. After a failover the same address leads to another server. */
const NOT_THE_MASTER = /^(READONLY|LOADING|MASTERDOWN)\b/;
/** Pause between reconnections while the address still leads to a replica, in milliseconds: faster ones do not help. */
const REFUSED_PAUSE_MS = 1000;
/**
 * A refusal this long after the last one, in milliseconds, starts a new failover: the connection reconnects at once.
 */
const REFUSALS_APART_MS = 10_000;

const CONNECT_MS = 3000;
/** ioredis destroys a connection that we end after this time, even if Redis has not closed its side, in milliseconds. */
const DISCONNECT_MS = 100;
/** Interval at which a client of a cluster reads which node serves which slots, in milliseconds. */
const SLOTS_INTERVAL_MS = 5000;

/** First part of every key: other applications may share the Redis. One slot of a cluster holds all keys. */
export function keyPrefixOf(redis: RedisClient): string {
  return redis.isCluster ? '{callplane}' : 'callplane';
}

/**
 * Opens a connection that reconnects forever, and follows the master to another server. It reports each loss once
 * instead of every failed attempt.
 */
export function connectRedis(
  where: RedisLocation,
  role: RedisRole,
  events: RedisEvents,
  more: ConnectionOptions = {},
): RedisClient {
  const target = typeof where === 'string' ? parseRedisUrl(where) : where;
  const refusals = new Refusals();
  const options: ConnectionOptions = { ...optionsOf(target, role, refusals), ...more };
  const redis =
    target.kind === 'cluster'
      ? new Cluster(
          target.nodes.map((node) => ({ ...node })),
          clusterOptions(role, { ...options, Connector: connectorOf(null, target.tls, DISCONNECT_MS) }),
        )
      : new Redis({ ...options, ...addressOf(target) });
  if (target.kind === 'sentinel') releaseAtEnd(redis, target);
  report(redis, events, refusals);
  return redis;
}

/** Counts the refusals of servers that are not the master, and decides how long to wait before the next attempt. */
class Refusals {
  #lastAtMs = -Infinity;
  pauseMs = 0;

  add(): void {
    const now = performance.now();
    this.pauseMs = now - this.#lastAtMs < REFUSALS_APART_MS ? REFUSED_PAUSE_MS : 0;
    this.#lastAtMs = now;
  }
}

function optionsOf(target: RedisTarget, role: RedisRole, refusals: Refusals): ConnectionOptions {
  const byRole: ConnectionOptions =
    role === 'command'
      ? { enableOfflineQueue: false, commandTimeout: COMMAND_DEADLINE_MS, maxRetriesPerRequest: 0 }
      : { enableOfflineQueue: true, maxRetriesPerRequest: null };
  return {
    ...byRole,
    ...credentialsOf(target.credentials),
    ...(target.tls === null ? {} : { tls: { ...target.tls } }),
    // Proxies that speak only RESP2 refuse the greeting of RESP3, which this project has no use for.
    protocol: 2,
    socketTimeout: SILENCE_MS[role],
    reconnectOnError: (error) => {
      if (!NOT_THE_MASTER.test(error.message)) return false;
      refusals.add();
      // 2 sends the command again after the reconnection. A request does not wait for that, so 1 only reconnects.
      return role === 'blocking' ? 2 : 1;
    },
    connectTimeout: CONNECT_MS,
    keepAlive: 5000,
    disconnectTimeout: DISCONNECT_MS,
    retryStrategy: (attempt) => Math.max(refusals.pauseMs, reconnectDelayMs(attempt)),
  };
}

function addressOf(target: Exclude<RedisTarget, { kind: 'cluster' }>): ConnectionOptions {
  if (target.kind === 'server') {
    const { address, tls, database } = target;
    return { ...address, Connector: connectorOf(null, tls, DISCONNECT_MS), db: database };
  }
  return { Connector: connectorOf(finderOf(target).finder, target.tls, DISCONNECT_MS), db: target.database };
}

function clusterOptions(
  role: RedisRole,
  { retryStrategy, ...options }: ConnectionOptions,
): Omit<ClusterOptions, 'redisOptions'> & { redisOptions: ConnectionOptions } {
  const { enableOfflineQueue = true } = options;
  // Retries would use up the deadline of a command, and hide the reason of its failure.
  const retryMs = role === 'command' ? 0 : 100;
  return {
    redisOptions: options,
    enableOfflineQueue,
    clusterRetryStrategy: (attempt) => retryStrategy?.(attempt),
    retryDelayOnFailover: retryMs,
    retryDelayOnClusterDown: retryMs,
    slotsRefreshInterval: SLOTS_INTERVAL_MS,
    // Names stay names, because certificates contain them.
    dnsLookup: (name, callback) => callback(null, name),
  };
}

interface SharedFinder {
  finder: MasterFinder;
  users: number;
}

/** One finder serves all connections of the process to one master. */
const finders = new Map<string, SharedFinder>();

function finderOf(target: SentinelTarget): SharedFinder {
  const key = JSON.stringify(target);
  let shared = finders.get(key);
  if (shared === undefined) {
    shared = { finder: new MasterFinder(target), users: 0 };
    finders.set(key, shared);
  }
  return shared;
}

/** Run when this process ends a connection. ioredis emits no event if it ends one that waits to reconnect. */
const farewells = new WeakMap<RedisClient, () => void>();

/** The finder ends with its last connection. Copies that BullMQ makes of a connection end with their original. */
function releaseAtEnd(redis: RedisClient, target: SentinelTarget): void {
  const shared = finderOf(target);
  shared.users += 1;
  farewells.set(redis, () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    finders.delete(JSON.stringify(target));
    shared.finder.close();
  });
}

function report(redis: RedisClient, events: RedisEvents, refusals: Refusals): void {
  let reported = false;
  const lost = (error: Error): void => {
    if (reported || ending.has(redis)) return;
    reported = true;
    events.onLost(error);
  };
  redis.on('error', lost);
  redis.on('close', () => lost(new Error('the connection was closed')));
  const ready = (): void => {
    reported = false;
    events.onReady();
  };
  let steady: NodeJS.Timeout | undefined;
  redis.on('close', () => clearTimeout(steady));
  redis.on('ready', () => {
    // A replica accepts connections but refuses commands again and again. This loss, too, is reported only once.
    if (refusals.pauseMs > 0) steady = setTimeout(ready, REFUSALS_APART_MS).unref();
    else ready();
    refusals.pauseMs = 0;
  });
}

/** Interval of the pings with which a subscriber checks that its server still answers, in milliseconds. */
const SUBSCRIBER_PING_MS = 5000;
const SUBSCRIBER_SILENCE_MS = 5000;

/**
 * Opens a connection for subscriptions. It sends no commands, so without pings it would never notice a frozen server or
 * an address that leads elsewhere. It is replaced if a ping gets no answer.
 */
export function connectSubscriber(where: RedisLocation, events: RedisEvents): Redis {
  const target = typeof where === 'string' ? parseRedisUrl(where) : where;
  const socketTimeout = SUBSCRIBER_SILENCE_MS;
  const redis =
    target.kind === 'cluster'
      ? connectToAnyNode(target, events, { socketTimeout })
      : (connectRedis(target, 'blocking', events, { socketTimeout }) as Redis);
  const timer = setInterval(() => {
    if (redis.status === 'ready') redis.ping().catch(() => undefined);
  }, SUBSCRIBER_PING_MS).unref();
  redis.once('end', () => clearInterval(timer));
  return redis;
}

/** A cluster passes every message to all nodes, so any node will do. Each attempt tries the next one. */
function connectToAnyNode(
  target: Extract<RedisTarget, { kind: 'cluster' }>,
  events: RedisEvents,
  more: ConnectionOptions,
): Redis {
  const refusals = new Refusals();
  const Connector = connectorOf(inTurn(target.nodes), target.tls, DISCONNECT_MS);
  const redis = new Redis({ ...optionsOf(target, 'blocking', refusals), ...more, Connector });
  report(redis, events, refusals);
  return redis;
}

/** Connections that this process ends. They report no loss. */
const ending = new WeakSet<RedisClient>();

/** Closes a connection without waiting for the server, which may never answer. */
export function disconnectRedis(redis: RedisClient): Promise<void> {
  ending.add(redis);
  redis.disconnect();
  farewells.get(redis)?.();
  farewells.delete(redis);
  return Promise.resolve();
}
