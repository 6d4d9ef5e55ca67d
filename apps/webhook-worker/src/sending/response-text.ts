import { RESPONSE_BODY_KEPT_BYTES } from '@callplane/core';

/**
 * Returns the first 1 KiB of an answer as text that PostgreSQL can store. Invalid UTF-8 becomes U+FFFD, a character
 * that the cut splits is dropped, and U+0000 is removed.
 */
export function responseText(body: Buffer): string {
  if (body.length === 0) return '';
  const kept = body.subarray(0, RESPONSE_BODY_KEPT_BYTES);
  const isCut = body.length > kept.length;
  return new TextDecoder('utf-8').decode(kept, { stream: isCut }).replaceAll('\u0000', '');
}
