import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import { eventually, startTestJanus } from '@callplane/testing';
import fc from 'fast-check';
import { chooseNode, MediaNodes, parseMediaNodes, type NodeLoad } from './index.js';

describe('MEDIA_NODES', () => {
  test('parses to a list of names and addresses, which may be empty', () => {
    expect(parseMediaNodes('')).toEqual([]);
    expect(parseMediaNodes(' a=ws://10.0.0.1:8188 , eu-west-2=wss://media.internal/janus,')).toEqual([
      { id: 'a', url: 'ws://10.0.0.1:8188/' },
      { id: 'eu-west-2', url: 'wss://media.internal/janus' },
    ]);
  });

  test.each([
    ['ws://10.0.0.1:8188', /entry 1 must be name=ws:\/\/host:port/],
    ['a=ws://10.0.0.1,B=ws://10.0.0.2', /entry 2 must be/],
    ['a=ws://10.0.0.1,a=ws://10.0.0.2', /the name a is used more than once/],
    ['a=http://10.0.0.1', /a must have a ws:\/\/ or wss:\/\/ URL/],
    ['a=', /a must have a/],
    ['a=ws://me:hush@10.0.0.1', /the URL of a must not contain credentials/],
  ])('rejects %s', (text, reason) => {
    expect(() => parseMediaNodes(text)).toThrow(reason);
    expect(() => parseMediaNodes(text)).not.toThrow(/hush/);
  });
});

test('waiting for an unreachable node ends at its deadline, also when garbage is collected meanwhile', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const addresses = [{ id: 'gone', url: 'ws://127.0.0.1:9' }];
  const nodes = MediaNodes.open({ addresses, apiSecret: 'secret', adminKey: 'key', random: () => 0.5 });
  let outcome: string | null = null;
  nodes
    .get('gone')!
    .untilUp(300)
    .catch((error: unknown) => (outcome = String(error)));
  try {
    await eventually(() => {
      collectGarbage();
      return outcome;
    });
  } finally {
    await nodes.close();
  }
  expect(outcome).toMatch('gone is away');
});

test('each node of a process comes up on its own, and all close together', async () => {
  const janus = await startTestJanus();
  const addresses = [
    { id: 'here', url: janus.url },
    { id: 'gone', url: 'ws://127.0.0.1:9' },
  ];
  const nodes = MediaNodes.open({
    addresses,
    apiSecret: janus.apiSecret,
    adminKey: janus.adminKey,
    random: () => 0.5,
  });
  await nodes.get('here')!.untilUp(60_000);
  expect(nodes.up().map(({ id }) => id)).toEqual(['here']);
  expect(nodes.all().map(({ id }) => id)).toEqual(['here', 'gone']);
  expect(nodes.get('unknown')).toBeUndefined();
  await Promise.all([nodes.close(), nodes.close()]);
  expect(nodes.up()).toEqual([]);
});

describe('the node for a new room', () => {
  const load = fc.record({ rooms: fc.nat(50), sessions: fc.nat(500), draining: fc.boolean() });
  const id = fc.stringMatching(/^[a-z]{1,3}$/);
  const weight = (entry: NodeLoad | undefined) => (entry === undefined ? 0 : entry.rooms + entry.sessions);

  test('is healthy, not draining, and the least loaded of those', () => {
    fc.assert(
      fc.property(fc.uniqueArray(id), fc.dictionary(id, load), (healthy, entries) => {
        const loads = new Map(Object.entries(entries));
        const candidates = healthy.filter((name) => loads.get(name)?.draining !== true);
        const chosen = chooseNode(healthy, loads);
        if (candidates.length === 0) expect(chosen).toBeNull();
        else {
          expect(candidates).toContain(chosen);
          for (const name of candidates)
            expect(weight(loads.get(chosen!))).toBeLessThanOrEqual(weight(loads.get(name)));
        }
      }),
    );
  });

  test('does not depend on the order in which the nodes are named', () => {
    fc.assert(
      fc.property(
        fc
          .uniqueArray(id)
          .chain((ids) => fc.tuple(fc.constant(ids), fc.shuffledSubarray(ids, { minLength: ids.length }))),
        fc.dictionary(id, load),
        ([ids, shuffled], entries) => {
          const loads = new Map(Object.entries(entries));
          expect(chooseNode(shuffled, loads)).toBe(chooseNode(ids, loads));
        },
      ),
    );
  });
});
