import ipaddr from 'ipaddr.js';

/**
 * The key under which a client's address is rate-limited: a whole IPv4 address, or the /64 of an IPv6 address, because
 * a provider gives one customer a /64.
 */
export function addressKey(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  const bytes = parsed.toByteArray().fill(0, 8);
  return `${ipaddr.fromByteArray(bytes).toString()}/64`;
}
