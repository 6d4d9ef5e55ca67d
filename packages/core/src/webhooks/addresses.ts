import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** Its first address, and the length of its prefix. */
export type Range = [Address, number];

const ranges = (list: readonly string[]): Range[] => list.map((cidr) => ipaddr.parseCIDR(cidr));

/**
 * The complete IANA IPv4 special-purpose address registry (RFC 6890), and multicast. Some of its entries are globally
 * reachable (192.0.0.9 and .10, AS112, AMT). They are anycast services of the nearest network, never a customer's.
 */
const NEVER_PUBLIC_IPV4 = ranges([
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private use
  '100.64.0.0/10', // shared address space of carriers
  '127.0.0.0/8', // loopback
  '169.254.0.0/16', // link-local; metadata services of clouds
  '172.16.0.0/12', // private use
  '192.0.0.0/24', // IETF protocol assignments: DS-Lite, dummy address, PCP and TURN anycast, NAT64 discovery
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relay anycast, withdrawn
  '192.168.0.0/16', // private use
  '192.175.48.0/24', // AS112, direct delegation
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and limited broadcast
]);

/**
 * IANA assigns global unicast addresses only from this range. It excludes: unspecified, loopback, IPv4-mapped,
 * IPv4-compatible, IPv4-translated, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard-only and dummy prefix (100::/64,
 * 100:0:0:1::/64), segment routing (5f00::/16), unique local, link-local, site-local and multicast.
 */
const GLOBAL_UNICAST_IPV6 = ranges(['2000::/3']);
/** The entries of the IANA IPv6 special-purpose address registry within 2000::/3. */
const NEVER_PUBLIC_IPV6 = ranges([
  '2001::/23', // IETF protocol assignments: Teredo, PCP, TURN and DNS-SD anycast, benchmarks, AMT, AS112, ORCHID, DRIP
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112, direct delegation
  '3fff::/20', // documentation
]);

/** ipaddr.js reads `::127.0.0.1` as `::ffff:127.0.0.1`; the URL parser first writes both in hexadecimal. */
export function parseAddress(text: string): Address {
  return ipaddr.parse(isIP(text) === 4 ? text : new URL(`http://[${text}]`).hostname.slice(1, -1));
}

export function unmapped(address: Address): Address {
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

export function isPublicAddress(address: Address): boolean {
  return address.kind() === 'ipv4'
    ? !isWithin(address, NEVER_PUBLIC_IPV4)
    : isWithin(address, GLOBAL_UNICAST_IPV6) && !isWithin(address, NEVER_PUBLIC_IPV6);
}

export function isWithin(address: Address, list: readonly Range[]): boolean {
  return list.some((range) => range[0].kind() === address.kind() && address.match(range));
}

export function parseRange(cidr: string): Range {
  const [text = '', prefix = '', ...rest] = cidr.split('/');
  const version = isIP(text);
  const bitsMax = version === 4 ? 32 : 128;
  if (version === 0 || text.includes('%') || rest.length > 0 || !/^(0|[1-9]\d*)$/.test(prefix) || +prefix > bitsMax) {
    throw new RangeError(`${JSON.stringify(cidr)} is not a range of addresses such as 10.0.0.0/8 or fd00::/8.`);
  }
  const start = parseAddress(text);
  const bits = start.toByteArray().map((byte) => byte.toString(2).padStart(8, '0'));
  if (bits.join('').slice(+prefix).includes('1')) {
    throw new RangeError(`${JSON.stringify(cidr)} is not a range of addresses: bits are set after its prefix.`);
  }
  return [start, +prefix];
}
