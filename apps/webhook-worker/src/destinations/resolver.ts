import { Resolver as CaresResolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { addressesInHostsFile } from './hosts-file.js';

/** Where names become addresses: the one thing about the network that tests replace. */
export interface Resolver {
  /**
   * @param hostname as in `URL.hostname`; never a literal address.
   * @returns at least one address, in the order in which to prefer them.
   * @throws DnsFailure
   */
  resolve(hostname: string, signal: AbortSignal): Promise<string[]>;
}

/** `code` is c-ares' own (`ENOTFOUND`, `ESERVFAIL`, …) or `DNS_TIMEOUT`. */
export class DnsFailure extends Error {
  readonly code: string;
  constructor(code: string) {
    super(`the name does not resolve: ${code}`);
    this.name = 'DnsFailure';
    this.code = code;
  }
}

/** The literal address that a URL names, without the brackets of IPv6; null when it names a host. */
export function literalAddress(url: URL): string | null {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) === 0 ? null : host;
}

/** One query of c-ares, in milliseconds; it asks again, other servers too, until the caller cancels. */
const QUERY_DEADLINE_MS = 2000;

/**
 * The system's names: `localhost` (RFC 6761: never asked of a server), /etc/hosts, then DNS by c-ares, which unlike
 * getaddrinfo can be cancelled and holds no thread. Not used: other sources of nsswitch.conf, and search domains, as
 * the URL of a webhook is absolute. IPv4 addresses come first, because a host without IPv6 is commoner than the reverse.
 * @param settings.servers in place of those of resolv.conf; for tests.
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
        // A family that has no answer is no risk: the connection goes to an address that was judged.
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
