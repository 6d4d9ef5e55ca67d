import type { IncomingMessage } from 'node:http';
import proxyAddr from 'proxy-addr';

/** Tells where a request comes from. */
export type CallerAddress = (request: IncomingMessage) => string | undefined;

/**
 * Reads `X-Forwarded-For` as far as it is believed.
 * @param trusted TRUST_PROXY: addresses and ranges of proxies, or how many there are; nobody is believed without it.
 * @throws TypeError when an entry is no address.
 */
export function createCallerAddress(trusted: readonly string[]): CallerAddress {
  const [first = ''] = trusted;
  const isNumber = trusted.length === 1 && /^\d+$/.test(first);
  const trust = isNumber
    ? (_address: string, hop: number): boolean => hop < Number(first)
    : proxyAddr.compile([...trusted]);
  return (request) => (request.socket.remoteAddress === undefined ? undefined : proxyAddr(request, trust));
}
