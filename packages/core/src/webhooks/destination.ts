import { isIP } from 'node:net';
import { parseUrl } from '../text/text.js';
import { isPublicAddress, isWithin, parseAddress, unmapped } from './addresses.js';
import { parseAllowedNetworks } from './allowed-networks.js';

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

/**
 * Port 443 and the unprivileged ports: mail, SSH, DNS and other services of the operating system listen on the others.
 */
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

/**
 * Maximum number of addresses per family that an attempt tries, so that an attempt does not scan a host with thousands
 * of addresses.
 */
const ADDRESSES_TRIED_PER_FAMILY_MAX = 2;

/** Selects the addresses to try, in their order. The caller has checked all of them. */
export function addressesToTry(addresses: readonly string[]): string[] {
  const tried = { 4: 0, 6: 0 };
  return addresses.filter((address) => (tried[isIP(address) === 6 ? 6 : 4] += 1) <= ADDRESSES_TRIED_PER_FAMILY_MAX);
}
