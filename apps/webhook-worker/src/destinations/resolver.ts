import { Resolver as CaresResolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP, isIPv4 } from 'node:net';

/** Resolves names to addresses. It is the only part of the network that tests replace. */
export interface Resolver {
  /**
   * @param hostname the `hostname` of a URL, never a literal address.
   * @returns at least one address, the preferred ones first.
   * @throws DnsFailure
   */
  resolve(hostname: string, signal: AbortSignal): Promise<string[]>;
}

/** `code` is a code of c-ares (`ENOTFOUND`, `ESERVFAIL`, …) or `DNS_TIMEOUT`. */
export class DnsFailure extends Error {
  readonly code: string;
  constructor(code: string) {
    super(`the name does not resolve: ${code}`);
    this.name = 'DnsFailure';
    this.code = code;
  }
}

/** Returns the literal address in a URL, without the brackets of IPv6, or null if the URL contains a host name. */
export function literalAddress(url: URL): string | null {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) === 0 ? null : host;
}

/** Deadline of one c-ares query, in milliseconds. c-ares retries, also on other servers, until the caller cancels. */
const QUERY_DEADLINE_MS = 2000;

/**
 * Resolves names like the system: `localhost` (RFC 6761: never sent to a server), /etc/hosts, then DNS through c-ares.
 * Unlike getaddrinfo, c-ares can be cancelled and blocks no thread. Other sources in nsswitch.conf are not used, nor
 * are search domains, because the URL of a webhook is absolute. IPv4 addresses come first, because hosts without IPv6
 * are more common than hosts without IPv4.
 * @param settings.servers DNS servers that replace those of resolv.conf; for tests.
 */
export function systemResolver(settings: { servers?: readonly string[] } = {}): Resolver {
  return {
    async resolve(hostname, signal) {
      const name = hostname.replace(/\.$/, '');
      if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1'];
      const known = await addressesInHostsFile(name);
      if (known.length > 0) return known;
      const cares = new CaresResolver({ timeout: QUERY_DEADLINE_MS, tries: 3 });
      if (settings.servers !== undefined) cares.setServers(settings.servers);
      const cancel = (): void => cares.cancel();
      signal.addEventListener('abort', cancel);
      try {
        const [ipv4, ipv6] = await Promise.allSettled([cares.resolve4(name), cares.resolve6(name)]);
        // One address family may fail without risk, because the connection goes to a checked address of the other.
        const addresses = [ipv4, ipv6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
        if (addresses.length > 0) return addresses;
        const code = [ipv4, ipv6].map(codeOf).find((each) => each !== 'ENODATA') ?? 'ENODATA';
        throw new DnsFailure(code === 'ETIMEOUT' || code === 'ECANCELLED' ? 'DNS_TIMEOUT' : code);
      } finally {
        signal.removeEventListener('abort', cancel);
      }
    },
  };
}

function codeOf(answer: PromiseSettledResult<unknown>): string {
  return answer.status === 'rejected' ? ((answer.reason as NodeJS.ErrnoException).code ?? 'DNS_FAILED') : 'ENODATA';
}

/** The file is read again after this time, in milliseconds. Containers never change it, developers sometimes do. */
const FRESH_MS = 5000;

let read: { at: number; names: Promise<ReadonlyMap<string, readonly string[]>> } | undefined;

/**
 * Returns the addresses of a name in /etc/hosts, IPv4 first. c-ares does not read this file, but containers reach their
 * host through it.
 */
async function addressesInHostsFile(name: string): Promise<string[]> {
  const now = performance.now();
  if (read === undefined || now - read.at > FRESH_MS) {
    read = { at: now, names: readFile('/etc/hosts', 'utf8').then(parseHosts, () => new Map()) };
  }
  return [...((await read.names).get(name.toLowerCase()) ?? [])];
}

/** Parses the format of hosts(5). */
function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address, ...aliases] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (address === undefined || isIP(address) === 0) continue;
    for (const alias of aliases) {
      const known = names.get(alias.toLowerCase()) ?? [];
      names.set(alias.toLowerCase(), isIPv4(address) ? [address, ...known] : [...known, address]);
    }
  }
  return names;
}
