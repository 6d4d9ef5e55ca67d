import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { parseUrl } from '../text/text.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** Its first address, and the length of its prefix. */
type Range = [Address, number];

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
function parseAddress(text: string): Address {
  return ipaddr.parse(isIP(text) === 4 ? text : new URL(`http://[${text}]`).hostname.slice(1, -1));
}

function unmapped(address: Address): Address {
  return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

function isPublicAddress(address: Address): boolean {
  return address.kind() === 'ipv4'
    ? !isWithin(address, NEVER_PUBLIC_IPV4)
    : isWithin(address, GLOBAL_UNICAST_IPV6) && !isWithin(address, NEVER_PUBLIC_IPV6);
}

function isWithin(address: Address, list: readonly Range[]): boolean {
  return list.some((range) => range[0].kind() === address.kind() && address.match(range));
}

function parseRange(cidr: string): Range {
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

/** A network that webhooks may use although its addresses are not public. */
export interface AllowedNetwork {
  /** As configured; the range itself if the setting gives no name. */
  name: string;
  cidr: string;
  range: Range;
}

const NAME = /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/;

/**
 * Parses ranges, each with or without a name: `backend=10.0.5.0/24`, `127.0.0.0/8`.
 * @throws RangeError that names the invalid entry.
 */
export function parseAllowedNetworks(entries: readonly string[]): AllowedNetwork[] {
  return entries.map((entry) => {
    const [, name, cidr = entry] = /^([^=/:]*)=(.*)$/.exec(entry) ?? [];
    if (name !== undefined && !NAME.test(name)) {
      throw new RangeError(
        `${JSON.stringify(entry)} has no valid name: use 1 to 32 lower-case letters, digits and hyphens, as in backend=10.0.5.0/24.`,
      );
    }
    return { name: name ?? cidr, cidr, range: parseRange(cidr) };
  });
}

/** The name of the network that allows this address; null if the address is public or not allowed. */
export function networkOf(networks: readonly AllowedNetwork[], address: string): string | null {
  const parsed = unmapped(parseAddress(address));
  if (isPublicAddress(parsed)) return null;
  return networks.find(({ range }) => isWithin(parsed, [range]))?.name ?? null;
}

export type NetworkRisk =
  /** It contains public addresses, or more addresses than one network of receivers needs. */
  | 'too_wide'
  /** It contains link-local addresses or a metadata service, which gives credentials of the machine to its callers. */
  | 'metadata';

/** Prefixes that allow more addresses than this: IPv4 a /16, IPv6 a /48. */
const PREFIX_MIN = { ipv4: 16, ipv6: 48 } as const;
const LOOPBACK = ['127.0.0.0/8', '::1/128'].map(parseRange);
/** Link-local addresses, and the metadata services of AWS (IPv6), Alibaba, Oracle and Azure beside them. */
const METADATA = [
  '169.254.0.0/16',
  'fe80::/10',
  'fd00:ec2::254/128',
  '100.100.100.200/32',
  '192.0.0.192/32',
  '168.63.129.16/32',
].map(parseRange);

export function risksOf({ range }: AllowedNetwork): NetworkRisk[] {
  const [address, prefix] = range;
  const isLoopback = LOOPBACK.some((loopback) => loopback[1] <= prefix && isWithin(address, [loopback]));
  return [
    ...(!isLoopback && prefix < PREFIX_MIN[address.kind()] ? (['too_wide'] as const) : []),
    ...(METADATA.some((each) => overlap(each, range)) ? (['metadata'] as const) : []),
  ];
}

function overlap(a: Range, b: Range): boolean {
  if (a[0].kind() !== b[0].kind()) return false;
  const bits = Math.min(a[1], b[1]);
  return isWithin(a[0], [[networkAddress(b[0], bits), bits]]);
}

function networkAddress(address: Address, bits: number): Address {
  const bytes = address
    .toByteArray()
    .map((byte, index) => byte & (0xff << Math.max(0, Math.min(8, 8 * (index + 1) - bits))));
  return ipaddr.fromByteArray(bytes);
}

export const WEBHOOK_URL_CHARACTERS_MAX = 2048;

/**
 * Creates the check of the addresses that a delivery may connect to: globally routable unicast, or within an allowed
 * range. An IPv6 form that embeds an IPv4 address is never public. An allowed IPv4 range also allows the IPv4-mapped
 * form, because connecting to it reaches the IPv4 host, but no other form.
 * @throws RangeError that names the invalid range.
 */
export function createAddressFilter(allowedCidrs: readonly string[]): (address: string) => boolean {
  const allowed = parseAllowedNetworks(allowedCidrs).map(({ range }) => range);
  return (text) => {
    // ipaddr.js also reads octal and short forms, which resolvers and parsed URLs never write. A zone has no meaning
    // outside this host.
    if (isIP(text) === 0 || text.includes('%')) return false;
    const address = parseAddress(text);
    return isPublicAddress(address) || isWithin(address, allowed) || isWithin(unmapped(address), allowed);
  };
}

/** Mail, SSH, DNS and other services of the operating system listen on the other ports. */
export const WEBHOOK_PORTS_DEFAULT: readonly string[] = ['443', '1024-65535'];

/**
 * Creates the check of the ports that a delivery may connect to.
 * @param ranges ports and ranges of ports: `443`, `1024-65535`.
 * @throws RangeError that names the entry that is neither.
 */
export function createPortFilter(ranges: readonly string[]): (port: number) => boolean {
  const parsed = ranges.map((text) => {
    const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
    if (first === undefined || +first < 1 || +first > Number(last) || Number(last) > 65_535) {
      throw new RangeError(`${JSON.stringify(text)} is not a port or a range of ports such as 443 or 1024-65535.`);
    }
    return [+first, Number(last)] as const;
  });
  return (port) => parsed.some(([first, last]) => port >= first && port <= last);
}

const isDefaultPort = createPortFilter(WEBHOOK_PORTS_DEFAULT);

/** Port 80 needs no entry of its own: it is allowed wherever http is allowed. */
function isPortOpen(url: URL, isAllowedPort: (port: number) => boolean): boolean {
  if (url.port !== '') return isAllowedPort(Number(url.port));
  return url.protocol === 'http:' || isAllowedPort(443);
}

/**
 * Checks everything that the URL alone shows; host names are checked once they are resolved. The WHATWG parser has
 * already normalised decimal, hexadecimal, octal, short and full-width spellings of an address. Store `url.href`, not
 * the text. A fragment is harmless, because it is never sent.
 * @returns a `reason` for the caller, phrased to follow the name of the field.
 */
export function checkUrl(
  text: string,
  settings: {
    allowHttp: boolean;
    isAllowed: (address: string) => boolean;
    isAllowedPort?: (port: number) => boolean;
  },
): { ok: true; url: URL } | { ok: false; reason: string } {
  const refuse = (reason: string) => ({ ok: false, reason }) as const;
  const tooLong = `must have at most ${WEBHOOK_URL_CHARACTERS_MAX} characters`;
  if (text.length > WEBHOOK_URL_CHARACTERS_MAX) return refuse(tooLong);
  const url = parseUrl(text);
  if (url === null) return refuse('must be an absolute URL');
  // Percent-encoding makes a URL longer.
  if (url.href.length > WEBHOOK_URL_CHARACTERS_MAX) return refuse(`${tooLong}, percent-encoded`);
  if (url.protocol !== 'https:' && !(settings.allowHttp && url.protocol === 'http:')) {
    return refuse(settings.allowHttp ? 'must begin with https:// or http://' : 'must begin with https://');
  }
  if (url.username !== '' || url.password !== '') return refuse('must not contain a user name or a password');
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (host === '') return refuse('must have a host');
  if (isIP(host) !== 0 && !settings.isAllowed(host)) return refuse('must not use an address that is not public');
  if (!isPortOpen(url, settings.isAllowedPort ?? isDefaultPort)) {
    return refuse('must have an allowed port: 443, or 1024 and above, unless configured otherwise');
  }
  return { ok: true, url };
}

/**
 * Whether a delivery may connect to the addresses that a name resolved to: there is one, and all of them are allowed. A
 * name that mixes public and private addresses is an attack or a mistake.
 */
export function mayConnectTo(addresses: readonly string[], isAllowed: (address: string) => boolean): boolean {
  return addresses.length > 0 && addresses.every(isAllowed);
}

/** So that an attempt does not scan a host with thousands of addresses. */
const ADDRESSES_TRIED_PER_FAMILY_MAX = 2;

export function addressesToTry(addresses: readonly string[]): string[] {
  const tried = { 4: 0, 6: 0 };
  return addresses.filter((address) => (tried[isIP(address) === 6 ? 6 : 4] += 1) <= ADDRESSES_TRIED_PER_FAMILY_MAX);
}
