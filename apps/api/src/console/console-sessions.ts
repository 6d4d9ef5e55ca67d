import type { Caller, Clock } from '@callplane/core';
import {
  findConsoleLink,
  findConsoleSessionsByHash,
  touchConsoleSession,
  type ConsoleIdentity,
  type Database,
} from '@callplane/db';
import type { Logger } from '@callplane/runtime';
import { LRUCache } from 'lru-cache';
import { CallerCache } from '../http/caller-cache.js';
import type { CallerDirectory, LookUpOptions } from '../http/request-context.js';

/** How old the noted time of the latest request may become, in milliseconds. */
const TOUCH_EVERY_MS = 60_000;
/** Sessions whose latest note this process remembers. */
const TOUCHED_MAX = 10_000;

/** Looks up the callers of console sessions by the hash of their cookie. */
export interface ConsoleSessionDirectory extends CallerDirectory {
  /** Looks the caller up for a request, which keeps the session from ending for want of requests. */
  findForRequest: CallerDirectory['find'];
}

interface Statements {
  load: (hashes: readonly string[]) => Promise<ReadonlyMap<string, ConsoleIdentity>>;
  touch: (caller: Caller, sessionId: string) => Promise<void>;
  onTouchFailed: (error: unknown) => void;
}

/** Caches console sessions like API keys. */
class ConsoleSessions implements ConsoleSessionDirectory {
  readonly #statements: Statements;
  readonly #clock: Clock;
  readonly #cache: CallerCache;
  /** The key behind each session that this process has read, by the hash of its cookie. */
  readonly #keyHashes = new LRUCache<string, string>({ max: TOUCHED_MAX });
  /** Time of the latest noted request, in milliseconds, by id. */
  readonly #touchedAtMs = new LRUCache<string, number>({ max: TOUCHED_MAX });

  constructor(statements: Statements, clock: Clock) {
    this.#statements = statements;
    this.#clock = clock;
    this.#cache = new CallerCache(async (hashes) => {
      const found = await statements.load(hashes);
      for (const [hash, { session, apiKeyHash, usedAt }] of found) {
        if (apiKeyHash !== null) this.#keyHashes.set(hash, apiKeyHash);
        this.#touchedAtMs.set(session.id, Math.max(usedAt.getTime(), this.#touchedAtMs.get(session.id) ?? 0));
      }
      return found;
    }, clock);
  }

  hasSeen(hash: Buffer): boolean {
    return this.#cache.hasSeen(hash);
  }

  find(hash: Buffer, options?: LookUpOptions): Promise<Caller | null> {
    return this.#cache.find(hash, options);
  }

  async findForRequest(hash: Buffer, options?: LookUpOptions): Promise<Caller | null> {
    const caller = await this.#cache.find(hash, options);
    if (caller?.session !== undefined) this.#touch(caller, caller.session.id);
    return caller;
  }

  /** Drops a session after the notice of its end. */
  forget(hashHex: string): void {
    this.#cache.forget(hashHex);
  }

  /** Drops the sessions of a key after the notice of its revocation. */
  forgetKey(keyHashHex: string): void {
    for (const [hash, keyHash] of this.#keyHashes.entries()) if (keyHash === keyHashHex) this.#cache.forget(hash);
  }

  #touch(caller: Caller, id: string): void {
    const nowMs = this.#clock.now().getTime();
    if (nowMs - (this.#touchedAtMs.get(id) ?? 0) < TOUCH_EVERY_MS) return;
    this.#touchedAtMs.set(id, nowMs);
    // The request does not wait for it. The next request of the session after a minute tries again.
    this.#statements.touch(caller, id).catch(this.#statements.onTouchFailed);
  }
}

/** The sessions and links of the console in this database. */
export function consoleDirectories(
  { database, reads }: { database: Database; reads: Database },
  logger: Logger,
  clock: Clock,
): { sessions: ConsoleSessions; links: CallerDirectory } {
  const sessions = new ConsoleSessions(
    {
      load: (hashes) => findConsoleSessionsByHash(reads.sql, hashes),
      touch: (caller, id) => touchConsoleSession(database.prisma, caller, id, clock.now()),
      onTouchFailed: (error) => logger.warn('console session not noted as used', { error }),
    },
    clock,
  );
  return { sessions, links: linksOf(database, clock) };
}

/**
 * A code is looked up once and then used, so nothing is cached. A client address that sends too many unknown keys gets
 * 429 without a look-up.
 */
function linksOf({ prisma }: Database, clock: Clock): CallerDirectory {
  return {
    hasSeen: () => false,
    find: async (codeHash, { inBatch = false } = {}) => {
      if (inBatch === true) return null;
      const link = await findConsoleLink(prisma, codeHash, clock.now());
      if (link === null) return null;
      const { id, projectId, environmentId } = link;
      return { projectId, environmentId, keyId: id, keyType: 'secret', scopes: [], loginCodeHash: codeHash };
    },
  };
}
