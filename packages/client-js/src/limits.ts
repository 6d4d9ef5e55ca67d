import { CallplaneError, invalidArgument } from './errors.js';
import { PROTOCOL_LIMITS } from './protocol.generated.js';

/** Checks what the gateway would refuse, so that the caller learns it at once and in its own words. */
export function assertMessage(data: unknown, to?: readonly string[]): void {
  assertSize('data', data, PROTOCOL_LIMITS.messageBytesMax);
  if (to === undefined) return;
  if (to.length === 0) throw invalidArgument('to', 'must have at least one participant id');
  assertCount('to', to.length, PROTOCOL_LIMITS.recipientsMax);
}

export function assertMetadata(metadata: unknown): void {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw invalidArgument('metadata', 'must be an object');
  assertSize('metadata', metadata, PROTOCOL_LIMITS.metadataBytesMax);
}

export function assertTracks(count: number): void {
  if (count === 0) throw invalidArgument('tracks', 'must not be empty');
  assertCount('tracks', count, PROTOCOL_LIMITS.subscriptionsMax);
}

export function assertShown(count: number): void {
  assertCount('participantIds', count, PROTOCOL_LIMITS.shownMax);
}

export function assertPage({ limit = 1 }: { limit?: number }): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > PROTOCOL_LIMITS.rosterPageMax)
    throw invalidArgument('limit', `must be an integer from 1 to ${PROTOCOL_LIMITS.rosterPageMax}`);
}

function assertCount(path: string, count: number, max: number): void {
  if (count > max) throw invalidArgument(path, `must have at most ${max} entries, not ${count}`);
}

function assertSize(path: string, value: unknown, bytesMax: number): void {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // It refers to itself, or has a BigInt.
  }
  if (text === undefined) throw invalidArgument(path, 'must be a JSON value');
  const bytes = new TextEncoder().encode(text).length;
  if (bytes <= bytesMax) return;
  const message = `must have at most ${bytesMax} bytes as JSON, not ${bytes}`;
  throw new CallplaneError('payload_too_large', `\`${path}\` ${message}`, { details: [{ path, message }] });
}
