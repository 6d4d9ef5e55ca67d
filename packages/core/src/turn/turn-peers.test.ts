import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { createAddressFilter } from '../webhooks/destination.js';
import { block, colons, dotted, SPECIAL_IPV4, SPECIAL_IPV6 } from '../webhooks/destination.testkit.js';

const policy = readFileSync(join(import.meta.dirname, '../../../../infra/coturn/turnserver.conf'), 'utf8');
const numberOf = (address: string) => block(`${address}/${isIP(address) === 4 ? 32 : 128}`).first;
const denied = [...policy.matchAll(/^denied-peer-ip=([^-\n]+)-(.+)$/gm)].map(([, first = '', last = '']) => ({
  version: isIP(first),
  first: numberOf(first),
  last: numberOf(last),
}));
const isPublic = createAddressFilter([]);

const isDenied = (version: number, address: bigint) =>
  denied.some((range) => range.version === version && range.first <= address && address <= range.last);
const textOf = (version: number, address: bigint) => (version === 4 ? dotted(address) : colons(address));

test('coturn denies every special-purpose address, in whole ranges', () => {
  for (const [version, cidrs] of [
    [4, SPECIAL_IPV4],
    [6, SPECIAL_IPV6],
  ] as const) {
    for (const { cidr, first, size } of cidrs.map(block)) {
      // coturn itself refuses the address `::`; tests/turn checks that.
      const ends = [first === 0n && version === 6 ? 1n : first, first + size / 2n, first + size - 1n];
      if (cidr === '::/128') continue;
      expect([cidr, ends.filter((address) => !isDenied(version, address))]).toEqual([cidr, []]);
    }
  }
});

test('coturn denies the same addresses as the check of webhook destinations, at both ends of every range', () => {
  expect(denied.length).toBeGreaterThan(20);
  for (const { version, first, last } of denied) {
    const top = version === 4 ? 0xffff_ffffn : (1n << 128n) - 1n;
    const around = [first - 1n, first, last, last + 1n].filter((address) => address >= 1n && address <= top);
    for (const address of around) {
      const text = textOf(version, address);
      expect([text, isDenied(version, address)]).toEqual([text, !isPublic(text)]);
    }
  }
});
