import type { IncomingMessage } from 'node:http';
import proxyAddr from 'proxy-addr';

/** Returns the address that a request comes from. */
export type CallerAddress = (request: IncomingMessage) => string | undefined;

/**
 * Creates a function that follows `X-Forwarded-For` through trusted proxies.
 * @param trusted TRUST_PROXY: addresses and ranges of proxies, or their number. If it is empty, `X-Forwarded-For` is
 *   ignored.
 * @throws TypeError if an entry is not an address.
 */
export function createCallerAddress(trusted: readonly string[]): CallerAddress {
  const [first = ''] = trusted;
  const isNumber = trusted.length === 1 && /^\d+$/.test(first);
  const trust = isNumber
    ? (_address: string, hop: number): boolean => hop < Number(first)
    : proxyAddr.compile([...trusted]);
  return (request) => (request.socket.remoteAddress === undefined ? undefined : proxyAddr(request, trust));
}
