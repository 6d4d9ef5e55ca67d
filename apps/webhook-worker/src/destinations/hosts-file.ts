import { readFile } from 'node:fs/promises';
import { isIP, isIPv4 } from 'node:net';

/** The file is read again after this time, in milliseconds. Containers never change it, developers sometimes do. */
const FRESH_MS = 5000;
const NONE: readonly string[] = [];

let read: { at: number; names: Promise<ReadonlyMap<string, readonly string[]>> } | undefined;

/**
 * Returns the addresses of a name in /etc/hosts, IPv4 first. c-ares does not read this file, but containers reach their
 * host through it.
 */
export async function addressesInHostsFile(name: string): Promise<string[]> {
  const now = performance.now();
  if (read === undefined || now - read.at > FRESH_MS) {
    read = { at: now, names: readFile('/etc/hosts', 'utf8').then(parseHosts, () => new Map()) };
  }
  return [...((await read.names).get(name.toLowerCase()) ?? NONE)];
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
