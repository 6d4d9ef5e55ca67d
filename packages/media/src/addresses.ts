import { parseUrl } from '@callplane/core';

export interface MediaNodeAddress {
  id: string;
  url: string;
}

const NAME = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;

/**
 * Parses MEDIA_NODES, a comma-separated list of `name=ws://host:port`.
 * @throws Error that names the fault. The message holds no part of a URL, so that it cannot leak credentials.
 */
export function parseMediaNodes(text: string): MediaNodeAddress[] {
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const seen = new Set<string>();
  return entries.map((entry, index) => {
    const sign = entry.indexOf('=');
    const id = sign === -1 ? '' : entry.slice(0, sign).trim();
    if (!isNodeName(id)) {
      throw new Error(
        `entry ${index + 1} must be name=ws://host:port, with a name of letters a to z, digits and hyphens`,
      );
    }
    if (seen.has(id)) throw new Error(`the name ${id} is used more than once`);
    seen.add(id);
    return { id, url: parseNodeUrl(id, entry.slice(sign + 1).trim()) };
  });
}

export function isNodeName(name: string): boolean {
  return NAME.test(name);
}

/**
 * @returns the URL in its normal form.
 * @throws Error that names the media server, and holds no part of the URL.
 */
export function parseNodeUrl(id: string, address: string): string {
  const url = parseUrl(address);
  if (url === null || !['ws:', 'wss:'].includes(url.protocol) || url.hostname === '') {
    throw new Error(`${id} must have a ws:// or wss:// URL`);
  }
  if (url.username !== '' || url.password !== '') throw new Error(`the URL of ${id} must not contain credentials`);
  return url.href;
}
