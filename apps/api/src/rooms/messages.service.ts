import { isOpen, MESSAGE_BYTES_MAX, PublicError, SERVER_SENDER, type Tenant } from '@callplane/core';
import { findRecipients } from '@callplane/db';
import { publishRoomMessage } from '@callplane/queue';
import type { Deps } from '../deps.js';

/** `Retry-After` in seconds while Redis does not answer. */
const RETRY_AFTER_SECONDS = 2;

export interface MessageInput {
  data: unknown;
  to?: string[];
}

/** @throws PublicError PAYLOAD_TOO_LARGE */
export function checkSize(data: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(data));
  if (bytes <= MESSAGE_BYTES_MAX) return;
  throw new PublicError('PAYLOAD_TOO_LARGE', {
    message: 'The message is too large.',
    details: [{ path: 'body.data', message: `must be at most ${MESSAGE_BYTES_MAX} bytes of JSON, not ${bytes}` }],
  });
}

/**
 * Sends a message of the server to the participants of a room, over the gateways that hold their connections. Like a
 * message of a participant, it reaches those that are connected, and is not stored.
 */
export async function sendMessage(
  deps: Pick<Deps, 'database' | 'clock' | 'producer'>,
  tenant: Tenant,
  roomId: string,
  { data, to }: MessageInput,
): Promise<{ sentAt: string; recipients: number }> {
  const found = await findRecipients(deps.database.sql, tenant, roomId, to ?? null);
  if (found === null) throw new PublicError('ROOM_NOT_FOUND');
  if (!isOpen(found.status)) throw new PublicError('ROOM_ENDED');
  if (found.absent.length > 0) {
    throw new PublicError('PARTICIPANT_NOT_FOUND', {
      message: 'Some recipients are not in the room. The message was not sent.',
      details: found.absent.map((id) => ({ path: 'body.to', message: `${id} is not in the room` })),
    });
  }
  const sentAt = deps.clock.now().toISOString();
  // The gateways pass the text on as it is.
  const text = JSON.stringify({ type: 'message', from: SERVER_SENDER, data, sentAt });
  const passed = { from: SERVER_SENDER, to: to ?? null, text };
  if (!(await publishRoomMessage(deps.producer.redis, roomId, SERVER_SENDER, passed))) {
    throw new PublicError('UNAVAILABLE', {
      message: 'The message could not be sent. Try again shortly.',
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    });
  }
  return { sentAt, recipients: found.present };
}
