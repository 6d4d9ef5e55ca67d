import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test } from '@jest/globals';
import { eventually, startTestJanus } from '@callplane/testing';
import fc from 'fast-check';
import {
  CAPACITY_DEFAULT,
  chooseForSession,
  chooseNode,
  MediaNodes,
  parseMediaNodes,
  type MediaNodeAddress,
  type NodeLoad,
} from './index.js';

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

describe('the registry', () => {
  const gone = (port: number) => `ws://127.0.0.1:${port}/`;
  const opened: MediaNodes[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((nodes) => nodes.close())));
  const open = (readRegistry: () => Promise<MediaNodeAddress[]>) => {
    const addresses = [{ id: 'fixed', url: gone(9) }];
    const nodes = MediaNodes.open({ addresses, apiSecret: 'secret', adminKey: 'key', random: () => 0, readRegistry });
    opened.push(nodes);
    return nodes;
  };

  test('adds and removes nodes; MEDIA_NODES wins, and unusable rows do not count', async () => {
    let rows: MediaNodeAddress[] = [
      { id: 'fixed', url: gone(1) },
      { id: 'a', url: gone(2) },
      { id: 'b', url: gone(3) },
      { id: 'bad', url: 'http://127.0.0.1' },
    ];
    const nodes = open(() => Promise.resolve(rows));
    const changes: string[] = [];
    nodes.on('added', ({ id }) => changes.push(`+${id}`));
    nodes.on('removed', ({ id }) => changes.push(`-${id}`));
    const fixed = nodes.get('fixed');
    expect(await nodes.lookUp('a')).toBe(nodes.get('a'));
    expect(nodes.get('fixed')).toBe(fixed);
    const [a, b] = [nodes.get('a')!, nodes.get('b')!];
    rows = [
      { id: 'a', url: gone(4) },
      { id: 'b', url: gone(3) },
    ];
    await nodes.refresh();
    expect(nodes.get('b')).toBe(b);
    expect(nodes.get('a')).not.toBe(a);
    await expect(a.untilUp(0)).rejects.toThrow('a is closed');
    rows = [];
    await nodes.refresh();
    expect(nodes.all()).toEqual([fixed]);
    expect(changes).toEqual(['+a', '+b', '-a', '+a', '-b', '-a']);
    expect([nodes.isConfigured('fixed'), nodes.isConfigured('a')]).toEqual([true, false]);
  });

  test('keeps its nodes if it cannot be read, and a read that began before a call does not answer it', async () => {
    const reads: { resolve: (rows: MediaNodeAddress[]) => void; reject: (error: Error) => void }[] = [];
    const nodes = open(() => new Promise((resolve, reject) => reads.push({ resolve, reject })));
    const first = nodes.refresh();
    await eventually(() => reads.length === 1);
    const [second, third] = [nodes.lookUp('a'), nodes.refresh()];
    expect(reads).toHaveLength(1);
    reads[0]!.resolve([]);
    await first;
    await eventually(() => reads.length === 2);
    reads[1]!.resolve([{ id: 'a', url: gone(2) }]);
    expect((await second)?.id).toBe('a');
    await third;
    const failing = nodes.refresh();
    await eventually(() => reads.length === 3);
    reads[2]!.reject(new Error('no database'));
    await expect(failing).rejects.toThrow('no database');
    expect(nodes.get('a')).toBeDefined();
    const late = nodes.refresh();
    await eventually(() => reads.length === 4);
    await nodes.close();
    reads[3]!.resolve([{ id: 'late', url: gone(5) }]);
    await Promise.all([late, nodes.refresh()]);
    expect(nodes.get('late')).toBeUndefined();
  });
});

describe('the node for a new room', () => {
  const load = fc.record({
    rooms: fc.nat(50),
    sessions: fc.nat(500),
    draining: fc.boolean(),
    capacity: fc.option(fc.integer({ min: 1, max: 1000 })),
    region: fc.constantFrom(null, 'eu', 'eu-west', 'us'),
  });
  const id = fc.stringMatching(/^[a-z]{1,3}$/);
  const region = fc.constantFrom(null, 'eu-west', 'eu-north', 'asia');
  const weight = (entry: NodeLoad | undefined) =>
    entry === undefined ? 0 : (entry.rooms + entry.sessions) / (entry.capacity ?? CAPACITY_DEFAULT);

  test('is healthy, not draining, and without a region the one whose capacity is used least', () => {
    fc.assert(
      fc.property(fc.uniqueArray(id), fc.dictionary(id, load), (healthy, entries) => {
        const loads = new Map(Object.entries(entries));
        const candidates = healthy.filter((name) => loads.get(name)?.draining !== true);
        const chosen = chooseNode(healthy, loads, null);
        if (candidates.length === 0) expect(chosen).toBeNull();
        else {
          expect(candidates).toContain(chosen);
          for (const name of candidates)
            expect(weight(loads.get(chosen!))).toBeLessThanOrEqual(weight(loads.get(name)));
        }
      }),
    );
  });

  test('is in the nearest region with a node that is not full, and there the one whose capacity is used least', () => {
    const near = (sessions: number, of: string | null, more: Partial<NodeLoad> = {}): NodeLoad => {
      return { rooms: 0, sessions, draining: false, capacity: 10, region: of, ...more };
    };
    const choose = (loads: Record<string, NodeLoad>, of: string | null) =>
      chooseNode(Object.keys(loads), new Map(Object.entries(loads)), of);
    const nodes = { a: near(1, 'us'), b: near(8, 'eu-west'), c: near(7, 'eu-west'), d: near(0, null) };
    expect(['eu-west', 'eu-north', 'us', 'asia', null].map((of) => choose(nodes, of))).toEqual([
      'c',
      'c',
      'a',
      'd',
      'd',
    ]);
    expect(choose({ ...nodes, c: near(10, 'eu-west') }, 'eu-west')).toBe('b');
    expect(choose({ a: near(1, 'us'), b: near(10, 'eu') }, 'eu')).toBe('a');
    expect(choose({ a: near(12, 'eu'), b: near(11, 'us') }, 'eu')).toBe('b');
    expect(choose({ a: near(1, 'us'), b: near(0, 'eu', { draining: true }) }, 'eu')).toBe('a');
  });

  test('does not depend on the order in which the nodes are named', () => {
    fc.assert(
      fc.property(
        fc
          .uniqueArray(id)
          .chain((ids) => fc.tuple(fc.constant(ids), fc.shuffledSubarray(ids, { minLength: ids.length }))),
        fc.dictionary(id, load),
        region,
        ([ids, shuffled], entries, of) => {
          const loads = new Map(Object.entries(entries));
          expect(chooseNode(shuffled, loads, of)).toBe(chooseNode(ids, loads, of));
        },
      ),
    );
  });
});

describe('the node for a session', () => {
  const load = (sessions: number, more: Partial<NodeLoad> = {}): NodeLoad => {
    return { rooms: 0, sessions, draining: false, capacity: 10, region: null, ...more };
  };
  const choose = (loads: Record<string, NodeLoad>, nodeIds: string[], nodesMax = 2, region: string | null = null) =>
    chooseForSession(Object.keys(loads), new Map(Object.entries(loads)), { nodeIds, nodesMax }, region);

  test("is the room's own until it is full, then one that the room uses, then another one", () => {
    expect(choose({ a: load(9), b: load(0) }, ['a'])).toBe('a');
    expect(choose({ a: load(10), b: load(0) }, ['a'])).toBe('b');
    expect(choose({ a: load(10), b: load(3), c: load(0) }, ['a', 'b'], 3)).toBe('b');
    expect(choose({ a: load(10), b: load(10), c: load(0) }, ['a', 'b'], 3)).toBe('c');
  });

  test('is one of the room if it may use no more, none is free, or the free ones drain', () => {
    expect(choose({ a: load(12), b: load(11), c: load(0) }, ['a', 'b'])).toBe('b');
    expect(choose({ a: load(11), b: load(10) }, ['a'])).toBe('a');
    expect(choose({ a: load(11), b: load(0, { draining: true }) }, ['a'])).toBe('a');
    expect(choose({ b: load(10) }, ['a', 'b'])).toBe('b');
    expect(choose({}, ['a'])).toBeNull();
  });

  test('is a nearer one than the own of the room, also if the room does not use it yet', () => {
    const [eu, us] = [{ region: 'eu' }, { region: 'us' }];
    expect(choose({ a: load(1, eu), b: load(5, us) }, ['a'], 2, 'us')).toBe('b');
    expect(choose({ a: load(1, eu), b: load(5, us) }, ['a', 'b'], 2, 'us')).toBe('b');
    expect(choose({ a: load(5, eu), b: load(1, eu) }, ['a'], 2, 'eu')).toBe('a');
    expect(choose({ a: load(1, eu), b: load(5, us) }, ['a'], 2, 'asia')).toBe('a');
    expect(choose({ a: load(1, eu), b: load(10, us) }, ['a', 'b'], 2, 'us')).toBe('a');
    expect(choose({ a: load(1, eu), b: load(5, us), c: load(0, us) }, ['a', 'b'], 3, 'us')).toBe('b');
    expect(choose({ a: load(1, eu), b: load(0, us) }, ['a'], 1, 'us')).toBe('a');
    expect(choose({ a: load(12, us), b: load(11, eu) }, ['a', 'b'], 2, 'us')).toBe('b');
  });
});
