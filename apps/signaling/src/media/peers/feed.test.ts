import { expect, test } from '@jest/globals';
import { asNode, FakeHost, FakeNode, Gate } from '../media.testkit.js';
import { Feed } from './feed.js';

test('the tracks of a feed carry no speech any more once the feed is closed, and are reported once', async () => {
  const gate = new Gate();
  const [node, host] = [new FakeNode(gate), new FakeHost(gate)];
  const spoken: [string, number | null][] = [];
  host.speaking = (trackId: string, level: number | null) => spoken.push([trackId, level]);
  const place = { node: asNode(node), generation: 1, session: () => node.openSession() as never };
  const feed = await Feed.attach(host.asHost, place, 1, 'peer connection');
  feed.tracks = ['mic', 'second mic'].map((trackId, at) => ({
    trackId,
    mid: String(at),
    kind: 'audio',
    source: 'microphone',
    muted: false,
  }));
  feed.forget();
  await feed.close();
  expect(spoken).toEqual([
    ['mic', null],
    ['second mic', null],
  ]);
});
