import { expect, test } from '@jest/globals';
import { connectionTarget } from './connection-config.js';
import { Hosts } from './hosts.js';

const hostsOf = (list: string) => new Hosts(connectionTarget({ url: `postgresql://app:secret@${list}/calls` }), 5);

test('after a statement without an answer, the next connection goes to another host, and stays where it succeeds', () => {
  const hosts = hostsOf('one:5432,two:5432');
  hosts.onConnected(0);
  hosts.onSilence(0, 100);
  // Other connections to the same host stay silent as well.
  hosts.onSilence(0, 101);
  expect(hosts.next).toBe(1);
  expect([hosts.isStale(0, 101), hosts.isStale(0, 102)]).toEqual([true, false]);
  hosts.onFailure(1);
  expect(hosts.next).toBe(0);
  hosts.onSilence(0, 200);
  hosts.onConnected(1);
  hosts.onSilence(0, 201);
  expect(hosts.next).toBe(1);
  expect(hosts.isStale(0, 300)).toBe(true);
});

test('a single host gets the next connection whatever happens', () => {
  const hosts = hostsOf('one:5432');
  hosts.onSilence(0, 100);
  expect(hosts.next).toBe(0);
});
