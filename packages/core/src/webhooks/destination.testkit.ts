/**
 * Every entry of the IANA special-purpose address registries (2025-10-09), and other addresses that are not global
 * unicast.
 */
export const SPECIAL_IPV4 = [
  ...['0.0.0.0/8', '0.0.0.0/32', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.0.0/29', '192.0.0.8/32', '192.0.0.9/32', '192.0.0.10/32', '192.0.0.170/32'],
  ...['192.0.0.171/32', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.88.99.2/32'],
  ...['192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4'],
  ...['255.255.255.255/32', '224.0.0.0/4'],
];
export const SPECIAL_IPV6 = [
  ...['::1/128', '::/128', '::ffff:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '100:0:0:1::/64'],
  ...['2001::/23', '2001::/32', '2001:1::1/128', '2001:1::2/128', '2001:1::3/128', '2001:2::/48', '2001:3::/32'],
  ...['2001:4:112::/48', '2001:10::/28', '2001:20::/28', '2001:30::/28', '2001:db8::/32', '2002::/16'],
  ...['2620:4f:8000::/48', '3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10'],
  // Not in the registry: IPv4-compatible, IPv4-translated, site-local, multicast, never assigned.
  ...['::/96', '::ffff:0:0:0/96', 'fec0::/10', 'ff00::/8', '4000::/3', 'c000::/3'],
];

export interface Block {
  cidr: string;
  first: bigint;
  size: bigint;
}

const ipv4ToNumber = (text: string) => text.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);

/** Parses only the spellings of this file: hexadecimal groups and at most one `::`. */
function ipv6ToNumber(text: string): bigint {
  const [left = [], right = []] = text.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  return [...left, ...zeros, ...right].reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

export function block(cidr: string): Block {
  const [address = '', prefix = ''] = cidr.split('/');
  const [first, bits] = address.includes(':') ? [ipv6ToNumber(address), 128] : [ipv4ToNumber(address), 32];
  return { cidr, first, size: 1n << BigInt(bits - +prefix) };
}

export const isInside = (address: bigint, { first, size }: Block) => address >= first && address < first + size;

export const dotted = (address: bigint) => [24n, 16n, 8n, 0n].map((shift) => (address >> shift) & 255n).join('.');

const groups = (address: bigint) =>
  Array.from({ length: 8 }, (_, index) => ((address >> BigInt(112 - 16 * index)) & 0xffffn).toString(16));
export const colons = (address: bigint) => groups(address).join(':');

/** All kinds of spellings that the WHATWG URL parser reads as this IPv4 address. */
export function spellingsOfIpv4(address: bigint): string[] {
  const [a, b, c, d] = dotted(address).split('.').map(Number) as [number, number, number, number];
  const hex = (part: number) => `0x${part.toString(16)}`;
  const octal = (part: number) => `0${part.toString(8)}`;
  const fullWidth = (text: string) =>
    text.replace(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))).replaceAll('.', '。');
  const plain = dotted(address);
  return [
    plain,
    `${plain}.`,
    address.toString(),
    `0x${address.toString(16)}`,
    `0X${address.toString(16).toUpperCase().padStart(8, '0')}`,
    `0${address.toString(8)}`,
    [a, b, c, d].map(hex).join('.'),
    [a, b, c, d].map(octal).join('.'),
    [a, b, c, d].map((part) => `0x000${part.toString(16)}`).join('.'),
    `${hex(a)}.${octal(b)}.${c}.${d}`,
    `${a}.${b}.${(c << 8) | d}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    `${octal(a)}.${hex((b << 16) | (c << 8) | d)}`,
    fullWidth(plain),
    plain.replaceAll('.', '．'),
    plain.replaceAll('.', '｡'),
    plain.replace(/^./, (digit) => `%${digit.charCodeAt(0).toString(16)}`),
  ];
}

/** All kinds of spellings that the WHATWG URL parser reads as this IPv6 address, with brackets. */
export function spellingsOfIpv6(address: bigint): string[] {
  const short = groups(address);
  const dottedTail = `${short.slice(0, 6).join(':')}:${dotted(address & 0xffff_ffffn)}`;
  return [
    short.join(':'),
    short.join(':').toUpperCase(),
    short.map((group) => group.padStart(4, '0')).join(':'),
    new URL(`http://[${short.join(':')}]`).hostname.slice(1, -1),
    dottedTail,
  ].map((text) => `[${text}]`);
}
