import { randomInt, randomUUID } from 'node:crypto';
import { Job, Queue } from 'bullmq';
import { KEY_PREFIX, type RedisClient } from './redis.js';
import { QUEUE_NAMES } from '../jobs/jobs.js';

/** Reasons why Redis is unusable. /readyz, the metric, the logs and `rtc doctor` use these words. */
export const REDIS_TROUBLES = [
  /** No connection: refused, reset, no route, unknown host. */
  'unreachable',
  /** Connected, but no answer in time. */
  'frozen',
  /** It is loading its data from disk or from its master. */
  'loading',
  /** A replica: it refuses writes, or its master is unreachable. */
  'read-only',
  /** `maxmemory` is reached. */
  'full',
  /** It cannot write its data to disk and therefore refuses writes (MISCONF). */
  'not-persisting',
  /** The password or the permissions are wrong, or it does not know a command. */
  'refused',
  /** It is a cluster, which moves the keys of a queue to several servers. */
  'cluster',
  /** No TLS connection that can be trusted: another issuer or name, an expired certificate, or a server without TLS. */
  'untrusted',
] as const;
export type RedisTrouble = (typeof REDIS_TROUBLES)[number];

/** Thrown by a health check. `reason` is safe to show to callers. */
export class RedisUnusable extends Error {
  readonly reason: RedisTrouble;

  constructor(reason: RedisTrouble, cause?: unknown) {
    super(`Redis is ${reason}`, { cause });
    this.name = 'RedisUnusable';
    this.reason = reason;
  }
}

const REPLIES: readonly (readonly [RegExp, RedisTrouble])[] = [
  [/^OOM\b|maxmemory/, 'full'],
  [/^(READONLY|MASTERDOWN|NOREPLICAS)\b/, 'read-only'],
  [/^(LOADING|BUSY)\b/, 'loading'],
  [/^MISCONF\b/, 'not-persisting'],
  [/\bcluster mode\b|\b(CROSSSLOT|MOVED|CLUSTERDOWN)\b/, 'cluster'],
  [/^(NOAUTH|WRONGPASS|NOPERM)\b/, 'refused'],
  [/timed out/i, 'frozen'],
];
/** Codes of Node.js and OpenSSL for a failed TLS handshake. */
const TLS_CODES = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_|HOSTNAME_|ERR_TLS_|ERR_SSL_|EPROTO)/;

/**
 * Derives the trouble of the server from the error of a command: `refused` for an unknown reply, because the reply of a
 * script has another beginning in each version, and `unreachable` for other unknown errors.
 */
export function troubleOf(error: unknown): RedisTrouble {
  const { code, message, name } = Object(error) as { code?: unknown; message?: unknown; name?: unknown };
  if (typeof code === 'string' && TLS_CODES.test(code)) return 'untrusted';
  const known = REPLIES.find(([pattern]) => typeof message === 'string' && pattern.test(message));
  return known?.[1] ?? (name === 'ReplyError' ? 'refused' : 'unreachable');
}

/** Every probe writes this key. It expires after the last process has ended. */
const PROBE_KEY = `${KEY_PREFIX}:health`;
const PROBE_TTL_MS = 60_000;
/** One write per second and process bounds the cost of probes, however often the health is read. */
const PROBE_INTERVAL_MS = 1000;
/** How often a probe also runs a job, in milliseconds. Three times that is the promise of the scans. */
const JOB_INTERVAL_MS = 5000;
/** How long the last known reason stays valid between two attempts to reconnect, in milliseconds. */
const REASON_LASTS_MS = 8000;

/** The health of each probed connection, for helpers that get only the connection. */
const healthOf = new WeakMap<RedisClient, RedisHealth>();

/**
 * Probes each second with a write, because a replica and a full Redis answer a PING as well, and every five seconds
 * with a job, because Redis may refuse commands that BullMQ needs. A timer triggers the probes, so that reading the
 * state costs a request nothing.
 */
export class RedisHealth {
  readonly #timer: NodeJS.Timeout;
  readonly #job: ProbeJob;
  /** When a job last passed, in milliseconds of `performance.now()`. */
  #jobPassedAtMs = -Infinity;
  #trouble: RedisTrouble | null = null;
  #knownAtMs = -Infinity;
  /** The last attempt to connect failed. */
  #isRefused = false;
  /** Why the attempts to connect fail, if the server or TLS gives a reason. */
  #refusal: RedisTrouble | null = null;
  #probing: Promise<void> | undefined;

  /** @param redis a `command` connection: its commands fail within their deadline. */
  constructor(private readonly redis: RedisClient) {
    this.#job = new ProbeJob(redis);
    healthOf.set(redis, this);
    this.#timer = setInterval(() => void this.probe(), PROBE_INTERVAL_MS).unref();
    redis.on('ready', () => {
      this.#refusal = null;
      void this.probe();
    });
    redis.on('connect', () => {
      this.#isRefused = false;
    });
    redis.on('error', (error: NodeJS.ErrnoException) => {
      const reason = troubleOf(error);
      this.#refusal = reason === 'unreachable' || reason === 'frozen' ? null : reason;
      if (error.syscall === 'connect' || error.syscall === 'getaddrinfo') this.#isRefused = true;
    });
  }

  /** The result of the last probe; null if Redis accepts writes and jobs. */
  get trouble(): RedisTrouble | null {
    return this.#trouble;
  }

  /** Whether Redis answers commands that write nothing. A full Redis still delivers notices. */
  get answers(): boolean {
    return this.#trouble === null || this.#trouble === 'full';
  }

  /**
   * For health checks. It probes again only if the last probe is older than a second.
   * @throws RedisUnusable
   */
  async check(): Promise<void> {
    if (performance.now() - this.#knownAtMs > PROBE_INTERVAL_MS) await this.probe();
    if (this.#trouble !== null) throw new RedisUnusable(this.#trouble);
  }

  /** A command of BullMQ or a script has failed: probes now, and with a job. Never throws. */
  probeAll(): Promise<void> {
    this.#jobPassedAtMs = -Infinity;
    return this.probe();
  }

  /** Probes now. Concurrent callers share one probe. Never throws. */
  probe(): Promise<void> {
    this.#probing ??= this.#look().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const result = await this.#tryAWrite();
    const trouble = result === 'unreachable' ? (this.#refusal ?? result) : result;
    const now = performance.now();
    // Without a connection a probe learns nothing. The reason from the last connection is more specific.
    const isGap = trouble === 'unreachable' && ['reconnecting', 'close'].includes(this.redis.status);
    const isKnown = this.#trouble !== null && now - this.#knownAtMs < REASON_LASTS_MS;
    if (isGap && isKnown && !this.#isRefused) return;
    this.#trouble = trouble;
    this.#knownAtMs = now;
  }

  async #tryAWrite(): Promise<RedisTrouble | null> {
    try {
      if (this.redis.status === 'connect') return await this.#greeting();
      await this.redis.set(PROBE_KEY, '1', 'PX', PROBE_TTL_MS);
      const startedAtMs = performance.now();
      if (startedAtMs - this.#jobPassedAtMs < JOB_INTERVAL_MS) return null;
      await this.#job.run();
      this.#jobPassedAtMs = startedAtMs;
      return null;
    } catch (error) {
      return troubleOf(error);
    }
  }

  /** Called if the connection is not ready. Redis answers INFO even while it loads its data. */
  async #greeting(): Promise<RedisTrouble> {
    return /^loading:1/m.test(await this.redis.info('persistence')) ? 'loading' : 'unreachable';
  }
}

/** False if Redis did not answer the last probe. Another command would then take its full deadline. */
export function isAnswering(redis: RedisClient): boolean {
  return redis.status === 'ready' && (healthOf.get(redis)?.answers ?? true);
}

/** A queue that only probes use. */
const QUEUE = 'probe';
/** Ids of its jobs, and so the most that processes leave behind that die during a probe. */
const JOBS_MAX = 16;
/** How long the probe blocks for a job that another process has taken, in seconds. */
const BLOCK_SECONDS = 0.01;
const OPTIONS = {
  prefix: KEY_PREFIX,
  skipVersionCheck: true,
  // BullMQ's workers have these options, and the script that takes a job needs them.
  lockDuration: 30_000,
  stalledInterval: 5000,
  maxStalledCount: 1_000_000,
  streams: { events: { maxLen: 100 } },
};

/**
 * A job that does nothing: adds it, blocks for it, takes one, and finishes it. Redis may accept writes and refuse a part of
 * that: scripts, blocking commands, streams, keys. Processes share the queue, so one may finish the job of another.
 */
export class ProbeJob {
  #queue: Queue | undefined;

  constructor(private readonly redis: RedisClient) {}

  /** @throws the error with which Redis refuses a part of it, or that it does not answer. */
  async run(): Promise<void> {
    const queue = this.#open();
    const token = randomUUID();
    // Every queue has its keys. A script names them, so that Redis checks them although the script uses none.
    const keys = QUEUE_NAMES.map((name) => `${KEY_PREFIX}:${name}:wait`);
    await this.redis.eval('return 0', keys.length, ...keys);
    await queue.add('probe', {}, { jobId: `probe-${randomInt(JOBS_MAX)}`, removeOnComplete: true, removeOnFail: true });
    await this.redis.bzpopmin(`${KEY_PREFIX}:${QUEUE}:marker`, BLOCK_SECONDS);
    const [taken, id] = (await queue.backend.moveToActive(token)) as [object | null | undefined, string];
    // Either another process has taken it, or a process has died with it.
    if (!taken) await queue.backend.moveStalledJobsToWait();
    else await finish(queue, id, token);
  }

  #open(): Queue {
    if (this.#queue !== undefined) return this.#queue;
    this.#queue = new Queue(QUEUE, { connection: this.redis, ...OPTIONS });
    this.#queue.on('error', () => undefined);
    return this.#queue;
  }
}

async function finish(queue: Queue, id: string, token: string): Promise<void> {
  try {
    await new Job(queue, 'probe', {}, { removeOnComplete: true }, id).moveToCompleted(null, token, false);
  } catch (error) {
    // BullMQ's own answers have a number: the job is not ours any more. Then the script has run.
    if (typeof (error as { code?: unknown }).code !== 'number') throw error;
  }
}
