import { describe, expect, test } from '@jest/globals';
import type { MediaNode, MediaSession } from '@callplane/media';
import { PROTOCOL_LIMITS } from '@callplane/protocol';
import fc from 'fast-check';
import type { TrackIndex } from '../rooms/tracks.js';
import type { SelectedTrack } from './selection.js';
import type { MediaOwner } from './media-writes.js';
import type { MediaPlace } from './places.js';
import { FakeSubscriber, type FakeStream } from './fake-subscriber.testkit.js';
import { ReceivingPeer } from './receiving-peer.js';

const ANSWER = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n';

/** A room with streams, and a receiver of it. */
class Stage {
  readonly published = new Map<string, FakeStream>();
  readonly handle = new FakeSubscriber(this.published);
  readonly peer: ReceivingPeer;
  /** Messages that a client needs: offers, and for a first connection the answers. */
  offers = 0;

  readonly #place: MediaPlace;

  constructor() {
    const node = { ensureRoom: () => Promise.resolve() } as unknown as MediaNode;
    const session = { attachSubscriber: () => Promise.resolve(this.handle) } as unknown as MediaSession;
    const listener = { onEnded: () => undefined, onDisturbed: () => undefined };
    this.peer = new ReceivingPeer({ send: () => undefined } as unknown as MediaOwner, node, listener);
    this.#place = { node, generation: 1, session: () => Promise.resolve(session) };
  }

  publish(count: number, codec = 'vp8', prefix = 'p'): void {
    for (let at = 0; at < count; at += 1) {
      const feedId = `${prefix}${at}`;
      this.published.set(`${feedId}/1`, { feedId, mid: '1', kind: 'video', codec });
    }
  }

  selected(names: readonly string[], settings: Partial<SelectedTrack> = {}): Map<string, SelectedTrack> {
    return new Map(
      names.map((name) => {
        const [feedId = '', mid = ''] = name.split('/');
        const kind = mid === '0' ? ('audio' as const) : ('video' as const);
        return [name, { key: name, kind, stream: { feedId, mid }, layer: undefined, paused: false, ...settings }];
      }),
    );
  }

  /** Aligns until nothing is left to do. @returns false if the connection has to be replaced. */
  async align(selected: ReadonlyMap<string, SelectedTrack>): Promise<boolean> {
    const index = { hasStream: (stream: { feedId: string; mid: string }) => this.#has(stream) };
    for (let rounds = 0; rounds < 6; rounds += 1) {
      const result = await this.peer.align(this.#place, selected, index as unknown as TrackIndex);
      if (result.outcome === 'exhausted') return false;
      if (result.outcome === 'aligned') return true;
      if (result.outcome === 'again') continue;
      this.offers += 1;
      const answered = this.peer.offer(this.offers, result.sdp);
      await this.peer.answer(ANSWER);
      await answered;
    }
    throw new Error('does not come to rest');
  }

  #has({ feedId, mid }: { feedId: string; mid: string }): boolean {
    return this.published.has(`${feedId}/${mid}`);
  }
}

const page = (at: number, size = 25) => Array.from({ length: size }, (_, n) => `p${at * size + n}/1`);

describe('the media sections of a receiver', () => {
  test('whose publisher leaves unnoticed get the offer that the media server makes', async () => {
    const stage = new Stage();
    stage.publish(2);
    await stage.align(stage.selected(['p0/1']));
    stage.handle.end(stage.published.get('p0/1')!);
    await stage.align(stage.selected(['p1/1']));
    expect([stage.handle.sent, stage.offers]).toEqual([['p1/1'], 2]);
  });

  test('of another codec are added, up to the limit of a connection', async () => {
    const stage = new Stage();
    stage.publish(20, 'vp8');
    stage.publish(30, 'h264', 'h');
    const h264 = (count: number) => Array.from({ length: count }, (_, at) => `h${at}/1`);
    await stage.align(stage.selected(page(0, 20)));
    expect(await stage.align(stage.selected([...page(0, 10), ...h264(10)]))).toBe(true);
    expect(stage.handle.sent).toEqual([...page(0, 10), ...h264(10)].sort());
    expect(await stage.align(stage.selected(h264(25)))).toBe(false);
    expect(stage.handle.sections.length).toBeLessThanOrEqual(PROTOCOL_LIMITS.sectionsMax);
  });

  test('send the wanted layers, and change them without an offer', async () => {
    const stage = new Stage();
    stage.publish(2);
    await stage.align(stage.selected(['p0/1', 'p1/1'], { layer: { spatial: 0 } }));
    expect(stage.handle.sections.map(({ substream }) => substream)).toEqual([0, 0]);
    await stage.align(stage.selected(['p0/1', 'p1/1'], { layer: { spatial: 1 } }));
    await stage.align(stage.selected(['p0/1', 'p1/1'], { layer: { spatial: 1 } }));
    expect(stage.handle.sections.map(({ substream }) => substream)).toEqual([1, 1]);
    await stage.align(stage.selected(['p0/1', 'p1/1']));
    expect(stage.handle.sections.map(({ substream }) => substream)).toEqual([2, 2]);
    expect(stage.offers).toBe(1);
    // Without a change nothing is requested.
    expect(stage.handle.did.filter((what) => what.startsWith('configure'))).toEqual(['configure 2', 'configure 2']);
  });

  test('send all temporal layers again when only a spatial one is wanted', async () => {
    const stage = new Stage();
    stage.publish(1);
    await stage.align(stage.selected(['p0/1'], { layer: { spatial: 1, temporal: 1 } }));
    const settings = (layer: SelectedTrack['layer']) =>
      stage.peer.sections.settings(stage.selected(['p0/1'], { layer }));
    expect(settings({ spatial: 2 })).toEqual([{ subscriberMid: '0', spatial: 2, temporal: 2 }]);
    expect(settings({ temporal: 0 })).toEqual([{ subscriberMid: '0', spatial: 2, temporal: 0 }]);
    expect(settings({ spatial: 1, temporal: 1 })).toEqual([]);
  });

  test('carry exactly the wanted and published tracks after every change, and never exceed the limits', async () => {
    const name = fc.record({ at: fc.nat(59), isAudio: fc.boolean() });
    const wanted = fc.uniqueArray(fc.nat(59), { maxLength: 25 });
    const heard = fc.uniqueArray(fc.nat(59), { maxLength: 8 });
    const step = fc.record({
      video: wanted,
      audio: heard,
      paused: fc.boolean(),
      leaves: fc.array(name, { maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        const stage = new Stage();
        stage.publish(60);
        for (let at = 0; at < 60; at += 1) {
          stage.published.set(`p${at}/0`, { feedId: `p${at}`, mid: '0', kind: 'audio', codec: 'opus' });
        }
        for (const { video, audio, paused, leaves } of steps) {
          for (const { at, isAudio } of leaves) {
            const stream = stage.published.get(`p${at}/${isAudio ? 0 : 1}`);
            if (stream === undefined) continue;
            stage.published.delete(`p${at}/${isAudio ? 0 : 1}`);
            stage.handle.end(stream);
          }
          const names = [...video.map((at) => `p${at}/1`), ...audio.map((at) => `p${at}/0`)];
          expect(await stage.align(stage.selected(names, { paused }))).toBe(true);
          const expected = names.filter((one) => stage.published.has(one)).sort();
          expect(stage.handle.sent).toEqual(paused ? [] : expected);
          const { sections } = stage.peer;
          expect([...sections.held].sort()).toEqual(expected);
          expect(sections.all.filter(({ kind }) => kind === 'video').length).toBeLessThanOrEqual(25);
          expect(sections.all.filter(({ kind }) => kind === 'audio').length).toBeLessThanOrEqual(8);
          // The gateway's sections equal the media server's.
          for (const section of sections.all) {
            if (section.isEnded) continue;
            const actual = stage.handle.sections.find(({ mid }) => mid === section.mid);
            expect([actual?.stream?.feedId ?? null, actual?.kind]).toEqual([
              section.stream?.feedId ?? null,
              section.kind,
            ]);
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});
