import ipaddr from 'ipaddr.js';
import { isPublicAddress, isWithin, parseAddress, parseRange, unmapped, type Range } from './addresses.js';

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

/** Why an allowed network is a risk. */
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

/** The address with all bits after the prefix cleared. */
function networkAddress(address: ipaddr.IPv4 | ipaddr.IPv6, bits: number): ipaddr.IPv4 | ipaddr.IPv6 {
  const bytes = address
    .toByteArray()
    .map((byte, index) => byte & (0xff << Math.max(0, Math.min(8, 8 * (index + 1) - bits))));
  return ipaddr.fromByteArray(bytes);
}
