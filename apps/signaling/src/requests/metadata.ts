import { metadataSizeFailure, storedJsonBytes } from '@callplane/core';
import { RequestFailure } from '../connections/request-failure.js';
import { ok, requirePermission, tooLarge } from './reply.js';
import type { Handler } from './request.js';

export const metadata: Handler<'metadata'> = async ({ connection, deps, session }, message) => {
  requirePermission(session, 'metadata:update');
  if (!connection.metadataBucket.take(performance.now())) throw new RequestFailure('rate_limited');
  const failure = metadataSizeFailure(storedJsonBytes(message.metadata));
  if (failure !== null) throw tooLarge('metadata', failure);
  const isWritten = await deps.metadataWrites.write(session.roomId, {
    held: session.held,
    metadata: message.metadata,
  });
  if (!isWritten) throw new RequestFailure('conflict', 'The session has ended.');
  ok(connection, message);
};
