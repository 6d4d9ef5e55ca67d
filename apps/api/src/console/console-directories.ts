import type { Clock } from '@callplane/core';
import { findConsoleLink, findConsoleSessionsByHash, touchConsoleSession, type Database } from '@callplane/db';
import type { Logger } from '@callplane/runtime';
import type { CallerDirectory } from '../http/request-context.js';
import { ConsoleSessions } from './console-sessions.js';

/** The sessions and links of the console in this database. */
export function consoleDirectories(
  { database, reads }: { database: Database; reads: Database },
  logger: Logger,
  clock: Clock,
): { sessions: ConsoleSessions; links: CallerDirectory } {
  const sessions = new ConsoleSessions(
    {
      load: (hashes) => findConsoleSessionsByHash(reads.sql, hashes),
      touch: (caller, id) => touchConsoleSession(database.sql, caller, id),
      onTouchFailed: (error) => logger.warn('console session not noted as used', { error }),
    },
    clock,
  );
  return { sessions, links: linksOf(database) };
}

/**
 * A code is looked up once and then used, so nothing is cached. A client address that sends too many unknown keys gets
 * 429 without a look-up.
 */
function linksOf({ sql }: Database): CallerDirectory {
  return {
    hasSeen: () => false,
    find: async (codeHash, { inBatch = false } = {}) => {
      if (inBatch === true) return null;
      const link = await findConsoleLink(sql, codeHash);
      if (link === null) return null;
      const { id, projectId, environmentId } = link;
      return { projectId, environmentId, keyId: id, keyType: 'secret', scopes: [], loginCodeHash: codeHash };
    },
  };
}
