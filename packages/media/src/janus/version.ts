import { textOf, type JanusMessage } from './messages.js';

/**
 * Clients can stop or crash an older Janus: before 1.3.1 with the number of a header extension, before 1.4.1 with a short
 * retransmission (RTX).
 */
export const JANUS_VERSION_MIN = '1.4.1';

/** The version in the answer to `info`, such as `1.4.1`. */
export function versionIn({ body }: JanusMessage): string {
  return textOf(body['version_string']) || '0';
}

export function isOutdated(version: string): boolean {
  return version.localeCompare(JANUS_VERSION_MIN, 'en', { numeric: true }) < 0;
}
