import type { MediaHost } from '../media-host.js';

const OFFERS_PER_CONNECTION = 1_000_000;

/**
 * The id of the offer that follows. The gateway that had the session before may have sent offers that it did not write
 * to PostgreSQL. Each connection has its own range, so an answer to one of those never fits an offer of this gateway.
 */
export function nextOfferId(before: number, { connectionNumber }: Pick<MediaHost, 'connectionNumber'>): number {
  return Math.max(before, (connectionNumber - 1) * OFFERS_PER_CONNECTION) + 1;
}
