import { expect, test } from '@jest/globals';
import { forwardPorts } from './forward-ports.js';

test('a range of ports has pairs for feeds, and its last port for probes', () => {
  expect(forwardPorts('2000-2005')).toEqual({ feeds: [2000, 2002], probe: 2005 });
  expect(forwardPorts('2000-2004')).toEqual({ feeds: [2000, 2002], probe: 2004 });
  const { feeds, probe } = forwardPorts('29000-29999');
  expect([feeds.length, feeds.at(-1)! + 1 < probe]).toEqual([499, true]);
});

test.each(['1000-2000', '65000-65536', '2000-2001', '3000-2000'])('the range %s is refused', (range) => {
  expect(() => forwardPorts(range)).toThrow('must be a range of ports');
});
