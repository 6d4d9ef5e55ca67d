import type { Permission } from '@callplane/core';
import type { ClientMessage } from '@callplane/protocol';
import type { Connection } from '../connections/connection.js';
import { RequestFailure } from '../connections/request-failure.js';
import type { Session } from '../sessions/session.js';

/** Acknowledges the request if the client gave it an id. */
export function ok(connection: Connection, message: ClientMessage): void {
  if (message.id !== undefined) connection.send({ type: 'ok', replyTo: message.id });
}

/** The field with which an answer names its request; none if the client gave it no id. */
export function replyTo({ id }: ClientMessage): { replyTo?: string } {
  return id === undefined ? {} : { replyTo: id };
}

/** @throws RequestFailure if the session lacks the permission. */
export function requirePermission(session: Session, permission: Permission): void {
  if (session.permissions.includes(permission)) return;
  throw new RequestFailure('permission_denied', `The participant lacks the permission ${permission}.`);
}

/** @param message what is wrong with the size of the field */
export function tooLarge(path: string, message: string): RequestFailure {
  return new RequestFailure('payload_too_large', undefined, [{ path, message }]);
}
