import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createAddressJudge, judgeAddresses, judgeUrl } from './destination.js';
import {
  block,
  colons,
  dotted,
  isInside,
  SPECIAL_IPV4,
  SPECIAL_IPV6,
  spellingsOfIpv4,
  spellingsOfIpv6,
  type Block,
} from './destination.testkit.js';

const isPublic = createAddressJudge([]);
const judge = (text: string, isAllowed = isPublic) => judgeUrl(text, { allowHttp: true, isAllowed });
const refused = { ok: false, reason: 'must not lead to an address that is not public' };

/** Any address of the block, its first and last more often than others. */
const addressIn = ({ first, size }: Block) =>
  fc.oneof(fc.constantFrom(first, first + size - 1n), fc.bigInt({ min: first, max: first + size - 1n }));

describe('addresses', () => {
  test.each(SPECIAL_IPV4)('%s is refused, in every spelling', (cidr) => {
    fc.assert(
      fc.property(addressIn(block(cidr)), (address) => {
        expect(isPublic(dotted(address))).toBe(false);
        for (const host of spellingsOfIpv4(address)) expect([host, judge(`http://${host}/`)]).toEqual([host, refused]);
      }),
      { numRuns: 50 },
    );
  });

  test.each(SPECIAL_IPV6)('%s is refused, in every spelling', (cidr) => {
    fc.assert(
      fc.property(addressIn(block(cidr)), (address) => {
        for (const spelling of spellingsOfIpv6(address)) expect(isPublic(spelling.slice(1, -1))).toBe(false);
        for (const host of spellingsOfIpv6(address)) expect([host, judge(`http://${host}/`)]).toEqual([host, refused]);
      }),
      { numRuns: 50 },
    );
  });

  test('right before and after each range of IPv4 there is what the next range says', () => {
    const blocks = SPECIAL_IPV4.map(block);
    for (const { first, size } of blocks) {
      for (const address of [first - 1n, first + size].filter((each) => each >= 0n && each < 1n << 32n)) {
        const isSpecial = blocks.some((each) => isInside(address, each));
        expect([dotted(address), isPublic(dotted(address))]).toEqual([dotted(address), !isSpecial]);
      }
    }
  });

  test('all other addresses are accepted, in every spelling', () => {
    const outside = (cidrs: string[]) => {
      const blocks = cidrs.map(block);
      return (address: bigint) => !blocks.some((each) => isInside(address, each));
    };
    fc.assert(
      fc.property(addressIn(block('0.0.0.0/0')).filter(outside(SPECIAL_IPV4)), (address) => {
        expect(isPublic(dotted(address))).toBe(true);
        for (const host of spellingsOfIpv4(address)) expect([host, judge(`http://${host}/`).ok]).toEqual([host, true]);
      }),
    );
    fc.assert(
      fc.property(addressIn(block('2000::/3')).filter(outside(SPECIAL_IPV6)), (address) => {
        expect(isPublic(colons(address))).toBe(true);
        for (const host of spellingsOfIpv6(address)) expect([host, judge(`http://${host}/`).ok]).toEqual([host, true]);
      }),
    );
    for (const address of ['1.1.1.1', '8.8.8.8', '93.184.216.34', '2606:4700:4700::1111', '2a00:1450:4001:81b::200e']) {
      expect([address, isPublic(address)]).toEqual([address, true]);
    }
  });

  test('no IPv6 form of an IPv4 address is public, whatever address it is', () => {
    fc.assert(
      fc.property(addressIn(block('0.0.0.0/0')), fc.bigInt({ min: 0n, max: (1n << 80n) - 1n }), (ipv4, rest) => {
        const forms = {
          mapped: (0xffffn << 32n) | ipv4,
          compatible: ipv4,
          translated: (0xffffn << 48n) | ipv4,
          nat64: block('64:ff9b::/96').first | ipv4,
          localNat64: block('64:ff9b:1::/48').first | ipv4,
          sixToFour: block('2002::/16').first | (ipv4 << 80n) | rest,
          teredo: block('2001::/32').first | (rest & ~0xffff_ffffn & ((1n << 64n) - 1n)) | (ipv4 ^ 0xffff_ffffn),
        };
        for (const [name, address] of Object.entries(forms)) {
          expect([name, isPublic(colons(address))]).toEqual([name, false]);
          // Whoever allows all of IPv4 has not allowed its tunnels.
          const isAllowed = createAddressJudge(['0.0.0.0/0']);
          expect([name, isAllowed(colons(address))]).toEqual([name, name === 'mapped']);
        }
      }),
    );
  });

  test('what is no plain address is refused', () => {
    const isAllowed = createAddressJudge(['0.0.0.0/0', '::/0']);
    for (const text of ['', 'localhost', '0x7f.1', '2130706433', '127.1', '0177.0.0.1', '8.8.8.8 ', 'fe80::1%eth0']) {
      expect([text, isAllowed(text)]).toEqual([text, false]);
    }
    expect(isPublic('2606:4700:4700::1111%eth0')).toBe(false);
  });
});

describe('allowed ranges', () => {
  test('open what lies within and nothing else', () => {
    const isAllowed = createAddressJudge(['127.0.0.0/8', '10.1.2.3/32', 'fd00::/8', '::1/128']);
    for (const address of ['127.0.0.1', '127.255.255.255', '10.1.2.3', 'fd12::1', '::1', '8.8.8.8']) {
      expect([address, isAllowed(address)]).toEqual([address, true]);
    }
    for (const address of ['10.1.2.4', '192.168.0.1', 'fc00::1', '::2', '::', '169.254.169.254']) {
      expect([address, isAllowed(address)]).toEqual([address, false]);
    }
  });

  test('of IPv4 hold for the mapped form too', () => {
    const isAllowed = createAddressJudge(['127.0.0.0/8']);
    expect(isAllowed('::ffff:127.0.0.1')).toBe(true);
    expect(isAllowed('::ffff:7f00:1')).toBe(true);
    expect(isAllowed('::ffff:10.0.0.1')).toBe(false);
    for (const text of ['::127.0.0.1', '::7f00:1', '64:ff9b::127.0.0.1', '2002:7f00:1::']) {
      expect([text, isAllowed(text)]).toEqual([text, false]);
    }
    expect(createAddressJudge(['::127.0.0.0/104'])('::ffff:127.0.0.1')).toBe(false);
    expect(judge('http://[::ffff:127.0.0.1]:8080/', isAllowed).ok).toBe(true);
    expect(judge('http://0x7f.1:8080/', isAllowed).ok).toBe(true);
  });

  test.each([
    ...[
      '',
      '10.0.0.0',
      '10/8',
      '10.0.0.0/',
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/08',
      '10.0.0.0/8/8',
      '0x0a.0.0.0/8',
    ],
    ...[
      '10.0.0.1/8',
      '::1',
      '::/129',
      'fe80::%eth0/10',
      'fd00::1/8',
      'localhost/8',
      '10.0.0.0/255.0.0.0',
      ' 10.0.0.0/8',
    ],
  ])('%j is named and refused', (cidr) => {
    expect(() => createAddressJudge(['127.0.0.0/8', cidr])).toThrow(RangeError);
    expect(() => createAddressJudge([cidr])).toThrow(JSON.stringify(cidr));
  });
});

describe('URLs', () => {
  test('https is accepted; http when it is allowed; nothing else ever', () => {
    const strict = (text: string) => judgeUrl(text, { allowHttp: false, isAllowed: isPublic });
    expect(strict('https://example.com/hooks?a=b')).toEqual({
      ok: true,
      url: new URL('https://example.com/hooks?a=b'),
    });
    expect(strict('HTTPS://EXAMPLE.com:8443').ok).toBe(true);
    expect(strict('http://example.com/')).toEqual({ ok: false, reason: 'must begin with https://' });
    expect(judge('http://example.com/').ok).toBe(true);
    for (const text of [
      'ftp://example.com',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'ws://example.com',
      'gopher:x',
    ]) {
      expect(judge(text)).toEqual({ ok: false, reason: 'must begin with https:// or http://' });
      expect(strict(text).ok).toBe(false);
    }
  });

  test('a user name or a password is refused, also one that hides the host', () => {
    for (const authority of ['user@', 'user:pass@', ':pass@', 'example.com:443@', 'a%40b@', 'example.com%2f@']) {
      expect(judge(`https://${authority}example.org/`)).toEqual({
        ok: false,
        reason: 'must not hold a user name or a password',
      });
    }
  });

  test('what is no URL is refused', () => {
    for (const text of [
      '',
      'example.com',
      '/hooks',
      'https://',
      'https://[::1',
      'https://a b/',
      'https://1.2.3.256/',
    ]) {
      expect(judge(text)).toEqual({ ok: false, reason: 'must be an absolute URL' });
    }
    expect(judge('https://[fe80::1%25eth0]/').ok).toBe(false);
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => typeof judge(text).ok === 'boolean'));
  });

  test('it has at most 2048 characters, as given and as stored', () => {
    const start = 'https://example.com/';
    expect(judge(start.padEnd(2048, 'a')).ok).toBe(true);
    expect(judge(start.padEnd(2049, 'a'))).toEqual({ ok: false, reason: 'must have at most 2048 characters' });
    expect(judge(start.padEnd(1000, 'ä')).ok).toBe(false);
  });

  test('names are not judged: only what they resolve to is', () => {
    for (const host of [
      'localhost',
      'internal.example',
      '127.0.0.1.nip.io',
      'xn--nxasmq6b',
      'metadata.google.internal',
    ]) {
      expect(judge(`https://${host}/`).ok).toBe(true);
    }
  });
});

describe('resolved addresses', () => {
  test('the first is connected to, if each one is allowed', () => {
    expect(judgeAddresses(['8.8.8.8', '2606:4700:4700::1111'], isPublic)).toBe('8.8.8.8');
    expect(judgeAddresses([], isPublic)).toBeNull();
  });

  test('a single one that is not public spoils all, wherever it stands', () => {
    const special = fc.constantFrom(...SPECIAL_IPV4.map((cidr) => dotted(block(cidr).first)));
    const others = fc.array(fc.constantFrom('8.8.8.8', '1.1.1.1', '2606:4700:4700::1111'));
    fc.assert(
      fc.property(others, special, others, (before, bad, after) => {
        expect(judgeAddresses([...before, bad, ...after], isPublic)).toBeNull();
      }),
    );
  });
});
