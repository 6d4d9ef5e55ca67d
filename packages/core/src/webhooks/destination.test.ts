import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { addressesToTry, createAddressFilter, checkUrl, createPortFilter, mayConnectTo } from './destination.js';
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

const isPublic = createAddressFilter([]);
const check = (text: string, isAllowed = isPublic) => checkUrl(text, { allowHttp: true, isAllowed });
const refused = { ok: false, reason: 'must not use an address that is not public' };

/** Any address of the block; prefers its first and last address. */
const addressIn = ({ first, size }: Block) =>
  fc.oneof(fc.constantFrom(first, first + size - 1n), fc.bigInt({ min: first, max: first + size - 1n }));

describe('addresses of webhook destinations', () => {
  test.each(SPECIAL_IPV4)('in %s are rejected in every spelling', (cidr) => {
    fc.assert(
      fc.property(addressIn(block(cidr)), (address) => {
        expect(isPublic(dotted(address))).toBe(false);
        for (const host of spellingsOfIpv4(address)) expect([host, check(`http://${host}/`)]).toEqual([host, refused]);
      }),
      { numRuns: 50 },
    );
  });

  test.each(SPECIAL_IPV6)('in %s are rejected in every spelling', (cidr) => {
    fc.assert(
      fc.property(addressIn(block(cidr)), (address) => {
        for (const spelling of spellingsOfIpv6(address)) expect(isPublic(spelling.slice(1, -1))).toBe(false);
        for (const host of spellingsOfIpv6(address)) expect([host, check(`http://${host}/`)]).toEqual([host, refused]);
      }),
      { numRuns: 50 },
    );
  });

  test('next to an IPv4 range are rejected only if another range contains them', () => {
    const blocks = SPECIAL_IPV4.map(block);
    for (const { first, size } of blocks) {
      for (const address of [first - 1n, first + size].filter((each) => each >= 0n && each < 1n << 32n)) {
        const isSpecial = blocks.some((each) => isInside(address, each));
        expect([dotted(address), isPublic(dotted(address))]).toEqual([dotted(address), !isSpecial]);
      }
    }
  });

  test('outside of the special ranges are accepted in every spelling', () => {
    const outside = (cidrs: string[]) => {
      const blocks = cidrs.map(block);
      return (address: bigint) => !blocks.some((each) => isInside(address, each));
    };
    fc.assert(
      fc.property(addressIn(block('0.0.0.0/0')).filter(outside(SPECIAL_IPV4)), (address) => {
        expect(isPublic(dotted(address))).toBe(true);
        for (const host of spellingsOfIpv4(address)) expect([host, check(`http://${host}/`).ok]).toEqual([host, true]);
      }),
    );
    fc.assert(
      fc.property(addressIn(block('2000::/3')).filter(outside(SPECIAL_IPV6)), (address) => {
        expect(isPublic(colons(address))).toBe(true);
        for (const host of spellingsOfIpv6(address)) expect([host, check(`http://${host}/`).ok]).toEqual([host, true]);
      }),
    );
    for (const address of ['1.1.1.1', '8.8.8.8', '93.184.216.34', '2606:4700:4700::1111', '2a00:1450:4001:81b::200e']) {
      expect([address, isPublic(address)]).toEqual([address, true]);
    }
  });

  test('of IPv4 are not public in any IPv6 form', () => {
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
          // Allowing all of IPv4 does not allow its tunnels.
          const isAllowed = createAddressFilter(['0.0.0.0/0']);
          expect([name, isAllowed(colons(address))]).toEqual([name, name === 'mapped']);
        }
      }),
    );
  });

  test('are rejected unless they are plain addresses', () => {
    const isAllowed = createAddressFilter(['0.0.0.0/0', '::/0']);
    for (const text of ['', 'localhost', '0x7f.1', '2130706433', '127.1', '0177.0.0.1', '8.8.8.8 ', 'fe80::1%eth0']) {
      expect([text, isAllowed(text)]).toEqual([text, false]);
    }
    expect(isPublic('2606:4700:4700::1111%eth0')).toBe(false);
  });
});

describe('allowed ranges of addresses', () => {
  test('allow the addresses within and no others', () => {
    const isAllowed = createAddressFilter(['127.0.0.0/8', '10.1.2.3/32', 'fd00::/8', '::1/128']);
    for (const address of ['127.0.0.1', '127.255.255.255', '10.1.2.3', 'fd12::1', '::1', '8.8.8.8']) {
      expect([address, isAllowed(address)]).toEqual([address, true]);
    }
    for (const address of ['10.1.2.4', '192.168.0.1', 'fc00::1', '::2', '::', '169.254.169.254']) {
      expect([address, isAllowed(address)]).toEqual([address, false]);
    }
  });

  test('of IPv4 also apply to the IPv4-mapped form', () => {
    const isAllowed = createAddressFilter(['127.0.0.0/8']);
    expect(isAllowed('::ffff:127.0.0.1')).toBe(true);
    expect(isAllowed('::ffff:7f00:1')).toBe(true);
    expect(isAllowed('::ffff:10.0.0.1')).toBe(false);
    for (const text of ['::127.0.0.1', '::7f00:1', '64:ff9b::127.0.0.1', '2002:7f00:1::']) {
      expect([text, isAllowed(text)]).toEqual([text, false]);
    }
    expect(createAddressFilter(['::127.0.0.0/104'])('::ffff:127.0.0.1')).toBe(false);
    expect(check('http://[::ffff:127.0.0.1]:8080/', isAllowed).ok).toBe(true);
    expect(check('http://0x7f.1:8080/', isAllowed).ok).toBe(true);
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
  ])('are rejected by name when malformed: %j', (cidr) => {
    expect(() => createAddressFilter(['127.0.0.0/8', cidr])).toThrow(RangeError);
    expect(() => createAddressFilter([cidr])).toThrow(JSON.stringify(cidr));
  });
});

describe('webhook URLs', () => {
  test('are accepted with https, with http when it is allowed, and with no other scheme', () => {
    const strict = (text: string) => checkUrl(text, { allowHttp: false, isAllowed: isPublic });
    expect(strict('https://example.com/hooks?a=b')).toEqual({
      ok: true,
      url: new URL('https://example.com/hooks?a=b'),
    });
    expect(strict('HTTPS://EXAMPLE.com:8443').ok).toBe(true);
    expect(strict('http://example.com/')).toEqual({ ok: false, reason: 'must begin with https://' });
    expect(check('http://example.com/').ok).toBe(true);
    for (const text of [
      'ftp://example.com',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'ws://example.com',
      'gopher:x',
    ]) {
      expect(check(text)).toEqual({ ok: false, reason: 'must begin with https:// or http://' });
      expect(strict(text).ok).toBe(false);
    }
  });

  test('may use port 443 and ports from 1024 by default, and port 80 with http', () => {
    const open = ['https://example.com/', 'https://example.com:443/', 'https://example.com:1024/'];
    const closed = [
      'https://example.com:22/',
      'https://example.com:25/',
      'https://example.com:80/',
      'https://example.com:1023/',
      'https://example.com:0/',
      'http://example.com:25/',
    ];
    for (const text of [...open, 'https://example.com:65535/', 'http://example.com/', 'http://example.com:80/']) {
      expect([text, check(text).ok]).toEqual([text, true]);
    }
    for (const text of closed) {
      expect([text, check(text)]).toEqual([
        text,
        { ok: false, reason: expect.stringMatching(/^must have an allowed port/) as unknown as string },
      ]);
    }
  });

  test('may use the configured ports', () => {
    const isAllowedPort = createPortFilter(['443', '8000-8080']);
    const configured = (text: string) => checkUrl(text, { allowHttp: false, isAllowed: isPublic, isAllowedPort }).ok;
    expect(
      ['', ':443', ':8000', ':8080', ':7999', ':8081'].map((port) => configured(`https://a.test${port}/`)),
    ).toEqual([true, true, true, true, false, false]);
    const onlyHigh = createPortFilter(['1024-65535']);
    expect(checkUrl('https://a.test/', { allowHttp: false, isAllowed: isPublic, isAllowedPort: onlyHigh }).ok).toBe(
      false,
    );
    for (const text of ['', '0', '65536', '9-8', '1-65536', 'x', '443-', '-1', '1e3', ' 443']) {
      expect(() => createPortFilter(['443', text])).toThrow(JSON.stringify(text));
    }
  });
});

describe('resolved addresses', () => {
  test('are tried in their order, two of each family', () => {
    const many = ['1.1.1.1', '2606::1', '1.1.1.2', '1.1.1.3', '2606::2', '2606::3', '1.1.1.4'];
    expect(addressesToTry(many)).toEqual(['1.1.1.1', '2606::1', '1.1.1.2', '2606::2']);
    expect(addressesToTry(['1.1.1.1'])).toEqual(['1.1.1.1']);
  });

  test('are rejected together if any of them is not public, at any position', () => {
    const special = fc.constantFrom(...SPECIAL_IPV4.map((cidr) => dotted(block(cidr).first)));
    const others = fc.array(fc.constantFrom('8.8.8.8', '1.1.1.1', '2606:4700:4700::1111'));
    fc.assert(
      fc.property(others, special, others, (before, bad, after) => {
        expect(mayConnectTo([...before, bad, ...after], isPublic)).toBe(false);
      }),
    );
  });
});
