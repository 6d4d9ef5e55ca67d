import type { Caller, Clock } from '@callplane/core';
import { type Database, findConsoleLink, findConsoleSessionsByHash, touchConsoleSession } from '@callplane/db';
import type { Logger } from '@callplane/runtime';
import { LRUCache } from 'lru-cache';
import { CallerCache } from '../http/authenticate.js';
import type { CallerDirectory, LookUpOptions } from '../http/request-context.js';

/** How old the noted time of the latest request may become, in milliseconds. */
const TOUCH_EVERY_MS = 60_000;
/** Sessions whose key and latest note this process remembers. */
const SESSIONS_MAX = 10_000;

/** Caches console sessions like API keys. They are looked up by the hash of their cookie. */
export class ConsoleSessions extends CallerCache {
  readonly #database: Database;
  readonly #logger: Logger;
  readonly #clock: Clock;
  /** The key behind each session that this process has read, by the hash of its cookie. */
  readonly #keyHashes = new LRUCache<string, string>({ max: SESSIONS_MAX });
  /** Time of the latest noted request, in milliseconds, by id. */
  readonly #touchedAtMs = new LRUCache<string, number>({ max: SESSIONS_MAX });

  constructor(database: Database, reads: Database, logger: Logger, clock: Clock) {
    super(async (hashes) => {
      const found = await findConsoleSessionsByHash(reads.sql, hashes);
      for (const [hash, { session, apiKeyHash, usedAt }] of found) {
        if (apiKeyHash !== null) this.#keyHashes.set(hash, apiKeyHash);
        this.#touchedAtMs.set(session.id, Math.max(usedAt.getTime(), this.#touchedAtMs.get(session.id) ?? 0));
      }
      return found;
    }, clock);
    this.#database = database;
    this.#logger = logger;
    this.#clock = clock;
  }

  override async find(hash: string, options: LookUpOptions = {}): Promise<Caller | null> {
    const caller = await super.find(hash, options);
    if (options.isRequest === true && caller?.session !== undefined) this.#touch(caller, caller.session.id);
    return caller;
  }

  forgetKey(keyHashHex: string): void {
    for (const [hash, keyHash] of this.#keyHashes.entries()) if (keyHash === keyHashHex) this.forget(hash);
  }

  #touch(caller: Caller, id: string): void {
    const now = this.#clock.now();
    if (now.getTime() - (this.#touchedAtMs.get(id) ?? 0) < TOUCH_EVERY_MS) return;
    this.#touchedAtMs.set(id, now.getTime());
    // The request does not wait for it. The next request of the session after a minute tries again.
    touchConsoleSession(this.#database.prisma, caller, id, now).catch((error: unknown) =>
      this.#logger.warn('console session not noted as used', { error }),
    );
  }
}

/**
 * The callers of links. A code is looked up once and then used, so nothing is cached. A client address that sends too
 * many unknown keys gets 429 without a look-up.
 */
export function consoleLinks({ prisma }: Database, clock: Clock): CallerDirectory {
  return {
    hasSeen: () => false,
    find: async (codeHashHex, { inBatch = false } = {}) => {
      if (inBatch === true) return null;
      const codeHash = Buffer.from(codeHashHex, 'hex');
      const link = await findConsoleLink(prisma, codeHash, clock.now());
      if (link === null) return null;
      const { id, projectId, environmentId } = link;
      return { projectId, environmentId, keyId: id, keyType: 'secret', scopes: [], loginCodeHash: codeHash };
    },
  };
}
