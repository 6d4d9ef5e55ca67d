import { Resolver as CaresResolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP, isIPv4 } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

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

/**
 * How long the addresses of one family wait for an answer about the other, in milliseconds: the Resolution Delay of
 * RFC 8305. Name servers and firewalls exist that drop every query for AAAA.
 */
const OTHER_FAMILY_MS = 50;
/**
 * A query without an answer is sent again after this time, in milliseconds, to the next server: a packet or a server may be
 * lost. The first query stays open, because its server may only be slow.
 */
const ASK_AGAIN_MS = 2000;
/** Deadline of the first query, in milliseconds. The caller cancels it before. */
const PATIENCE_MS = 60_000;

/**
 * Resolves names like the system: `localhost` (RFC 6761: never sent to a server), /etc/hosts, then DNS through c-ares.
 * Unlike getaddrinfo, c-ares can be cancelled and blocks no thread. Other sources in nsswitch.conf are not used, nor
 * are search domains, because the URL of a webhook is absolute. IPv4 addresses come first, because hosts without IPv6
 * are more common than hosts without IPv4.
 * @param settings.servers DNS servers instead of resolv.conf; for tests.
 */
export function systemResolver(settings: { servers?: readonly string[] } = {}): Resolver {
  return {
    async resolve(hostname, signal) {
      const name = hostname.replace(/\.$/, '');
      if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1', '::1'];
      const known = await addressesInHostsFile(name);
      if (known.length > 0) return known;
      const first = new CaresResolver({ timeout: PATIENCE_MS, tries: 1 });
      if (settings.servers !== undefined) first.setServers(settings.servers);
      const second = new CaresResolver({ timeout: ASK_AGAIN_MS / 2, tries: 3 });
      const [server = '', ...others] = first.getServers();
      second.setServers([...others, server]);
      const isOver = new AbortController();
      const end = (): void => {
        isOver.abort();
        for (const cares of [first, second]) cares.cancel();
      };
      signal.addEventListener('abort', end);
      try {
        return await ofEitherFamily([
          askFamily(
            isOver.signal,
            () => first.resolve4(name),
            () => second.resolve4(name),
          ),
          askFamily(
            isOver.signal,
            () => first.resolve6(name),
            () => second.resolve6(name),
          ),
        ]);
      } finally {
        signal.removeEventListener('abort', end);
        end();
      }
    },
  };
}

type Query = () => Promise<string[]>;

/** @throws DnsFailure */
async function askFamily(isOver: AbortSignal, first: Query, second: Query): Promise<string[]> {
  const asked = answerOf(first());
  const inTime = await Promise.race([asked, delay(ASK_AGAIN_MS, null, { signal: isOver })]).catch(failureOf);
  const answer = inTime ?? (await Promise.any([asked, answerOf(second())]).catch(failureOf));
  if (answer instanceof DnsFailure) throw answer;
  return answer;
}

/** That a name or its addresses do not exist is an answer, too. */
async function answerOf(query: Promise<string[]>): Promise<string[] | DnsFailure> {
  return query.catch((error: unknown) => {
    const failure = failureOf(error);
    if (failure.code === 'ENOTFOUND' || failure.code === 'ENODATA') return failure;
    throw failure;
  });
}

/**
 * One address family may fail without risk, because the connection goes to a checked address of the other.
 * @throws DnsFailure
 */
async function ofEitherFamily(families: readonly Promise<string[]>[]): Promise<string[]> {
  await Promise.any(families).catch((error: unknown) => {
    const failures = (error as AggregateError).errors.map(failureOf);
    throw failures.find(({ code }) => code !== 'ENODATA') ?? new DnsFailure('ENODATA');
  });
  const late = delay(OTHER_FAMILY_MS, []);
  const addresses = await Promise.all(families.map((family) => Promise.race([family, late]).catch(() => [])));
  return addresses.flat();
}

function failureOf(error: unknown): DnsFailure {
  if (error instanceof DnsFailure) return error;
  if (error instanceof AggregateError) return failureOf(error.errors[0]);
  const { code = 'DNS_FAILED' } = error as NodeJS.ErrnoException;
  return new DnsFailure(['ETIMEOUT', 'ECANCELLED', 'ABORT_ERR'].includes(code) ? 'DNS_TIMEOUT' : code);
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
