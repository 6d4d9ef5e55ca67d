import { describe, expect, test } from '@jest/globals';
import { createAddressFilter, networkOf, parseAllowedNetworks, risksOf } from './destination.js';

const risks = (entry: string) => parseAllowedNetworks([entry]).flatMap(risksOf);

describe('the allowed networks of webhooks', () => {
  test('have names, or are named by their range', () => {
    const networks = parseAllowedNetworks(['backend=10.0.5.0/24', 'fd00:5::/64', '8.8.8.0/24']);
    expect(networks.map(({ name }) => name)).toEqual(['backend', 'fd00:5::/64', '8.8.8.0/24']);
    expect(networkOf(networks, '10.0.5.17')).toBe('backend');
    expect(networkOf(networks, '::ffff:10.0.5.17')).toBe('backend');
    expect(networkOf(networks, 'fd00:5::1')).toBe('fd00:5::/64');
    expect(networkOf(networks, '10.0.6.1')).toBeNull();
    // A public address needs no permission.
    expect(networkOf(networks, '8.8.8.8')).toBeNull();
    const isAllowed = createAddressFilter(['backend=10.0.5.0/24']);
    expect([isAllowed('10.0.5.17'), isAllowed('10.0.6.1')]).toEqual([true, false]);
  });

  test.each([
    '=10.0.0.0/8',
    'Back End=10.0.0.0/8',
    '-a=10.0.0.0/8',
    `${'a'.repeat(33)}=10.0.0.0/8`,
    'a=b=10.0.0.0/8',
    'a=10.0.0.1/8',
    'a=',
    'a',
  ])('do not include %j', (entry) => {
    expect(() => parseAllowedNetworks([entry])).toThrow(RangeError);
  });

  test.each<[string, ReturnType<typeof risksOf>]>([
    ['backend=10.0.5.0/24', []],
    ['172.18.0.0/16', []],
    ['127.0.0.0/8', []],
    ['::1/128', []],
    ['fd00:5::/64', []],
    ['10.0.0.0/8', ['too_wide']],
    ['172.16.0.0/12', ['too_wide']],
    ['fd00::/8', ['too_wide', 'metadata']],
    ['0.0.0.0/0', ['too_wide', 'metadata']],
    ['::/0', ['too_wide', 'metadata']],
    ['169.254.169.254/32', ['metadata']],
    ['169.254.0.0/17', ['metadata']],
    ['169.254.128.0/17', ['metadata']],
    ['fe80::/64', ['metadata']],
    ['fd00:ec2::/64', ['metadata']],
    ['100.100.0.0/16', ['metadata']],
    ['100.101.0.0/16', []],
  ])('%s has the risks %j', (entry, expected) => {
    expect(risks(entry)).toEqual(expected);
  });
});
