import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { FakeNode, FakeSession, Gate, mediaError, placesOn, publishRequest, settled } from './media.testkit.js';
import { SessionMedia } from './session-media.js';

type Command =
  | 'publish over peer connection 1'
  | 'publish over peer connection 2'
  | 'attach succeeds'
  | 'attach fails'
  | 'the offer is answered'
  | 'the offer is refused'
  | 'the offer fails'
  | 'media flows'
  | 'the handle is closed'
  | 'the tracks are written'
  | 'the write fails'
  | 'the session is not held'
  | 'the room moves'
  | 'the media server goes down'
  | 'the media server comes up'
  | 'the client resets it'
  | 'unpublish'
  | 'client lost'
  | 'client resumes'
  | 'destroy';

/** A publication without a fault. Random commands alone seldom get so far. */
const USUAL: Command[] = [
  'publish over peer connection 1',
  'attach succeeds',
  'the offer is answered',
  'media flows',
  'the tracks are written',
];

/** A publisher whose media server, client and database obey the test. */
class Stage {
  readonly gate = new Gate();
  readonly node = new FakeNode(this.gate);
  readonly session = new FakeSession(this.gate);
  readonly server = { isUp: true };
  readonly media: SessionMedia;
  /** Numbers of the offers that were answered to their client. */
  readonly answered: number[] = [];
  /** Offers before this one are not written any more: a later one was, or the client has unpublished them. */
  first = 0;
  #offers = 0;

  constructor() {
    this.gate.hold('attach', 'offer', 'publishTracks');
    this.media = new SessionMedia(this.session.deps(placesOn(this.node, this.server)), this.session.asOwner);
    this.media.readPlacement();
    this.media.onWelcomed();
  }

  publish(peerConnection: number): void {
    this.#offers += 1;
    const number = this.#offers;
    const { tracks, ...request } = publishRequest(peerConnection);
    const named = tracks.map((track) => ({ ...track, trackId: String(number) }));
    this.media.publish({ ...request, tracks: named }).then(
      () => this.answered.push(number),
      () => undefined,
    );
  }

  /** The offer whose tracks are in the database; null without any. */
  get written(): number | null {
    const [track] = this.session.stored;
    return track === undefined ? null : Number(track.trackId);
  }

  open(name: string, outcome?: unknown): void {
    if (this.gate.waits(name)) this.gate.open(name, outcome);
  }

  /** Lets all requests succeed, and media flow. */
  async finish(): Promise<void> {
    for (let rounds = 0; rounds < 8; rounds += 1) {
      await settled();
      this.open('attach');
      this.open('offer');
      this.node.live.at(-1)?.emit('connected');
      this.open('publishTracks', true);
    }
    await settled();
  }

  resume(): void {
    if (this.session.isConnected) return;
    this.session.connectionNumber += 1;
    this.media.resumed(true);
    this.session.isConnected = true;
    this.media.onWelcomed();
  }

  lose(): void {
    this.session.isConnected = false;
    this.media.onConnectionLost();
  }
}

const ACTIONS: Record<Command, (stage: Stage) => void> = {
  'publish over peer connection 1': (stage) => stage.publish(1),
  'publish over peer connection 2': (stage) => stage.publish(2),
  'attach succeeds': (stage) => stage.open('attach'),
  'attach fails': (stage) => stage.open('attach', mediaError('timeout')),
  'the offer is answered': (stage) => stage.open('offer'),
  'the offer is refused': (stage) => stage.open('offer', mediaError('invalid_sdp')),
  'the offer fails': (stage) => stage.open('offer', mediaError('closed')),
  'media flows': ({ node }) => node.live.at(-1)?.emit('connected'),
  'the handle is closed': ({ node }) => {
    const handle = node.live.at(-1);
    handle?.emit('closed', 'ICE failed');
  },
  'the tracks are written': (stage) => stage.open('publishTracks', true),
  'the write fails': (stage) => stage.open('publishTracks', new Error('no database')),
  'the session is not held': (stage) => {
    if (!stage.gate.waits('publishTracks')) return;
    stage.session.isLive = false;
    stage.open('publishTracks', false);
  },
  'the room moves': ({ media, session }) => {
    const { mediaNodeId, mediaGeneration } = session.placed;
    session.placed = { furtherNodeIds: [], mediaNodeId, mediaGeneration: mediaGeneration + 1 };
    media.onPlacement();
  },
  'the media server goes down': ({ media, server }) => {
    server.isUp = false;
    media.onPlacement();
  },
  'the media server comes up': ({ media, server }) => {
    server.isUp = true;
    media.onPlacement();
  },
  'the client resets it': ({ media }) => void media.reset(['publisher']),
  unpublish: (stage) => {
    void stage.media.unpublish();
    stage.first = Math.max(stage.first, 1 + Math.max(0, ...stage.answered));
  },
  'client lost': (stage) => stage.lose(),
  'client resumes': (stage) => stage.resume(),
  destroy: ({ media }) => void media.destroy(),
};
const COMMANDS = Object.keys(ACTIONS) as Command[];

describe('a publisher', () => {
  test('has at most one handle, leaks none, and writes the tracks of the last answered offer or none', async () => {
    let published = 0;
    const usual = fc.nat({ max: USUAL.length }).map((count) => USUAL.slice(0, count));
    const others = fc.array(fc.constantFrom(...COMMANDS), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(usual, others, async (first, then) => {
        const stage = new Stage();
        const { node, session, media, server } = stage;
        const check = (command: string) => {
          expect([command, node.live.length <= 1]).toEqual([command, true]);
          if (stage.written === null) return;
          expect(stage.answered).toContain(stage.written);
          // An `unpublish` waits for a write that is under way.
          if (stage.gate.waits('publishTracks')) return;
          expect(stage.written).toBeGreaterThanOrEqual(stage.first);
          stage.first = Math.max(stage.first, stage.written);
        };
        for (const command of [...first, ...then]) {
          ACTIONS[command](stage);
          await settled();
          check(command);
        }
        // Now everything works, and the client publishes once more, unless the session is over.
        server.isUp = true;
        stage.resume();
        media.onPlacement();
        await stage.finish();
        stage.publish(3);
        await stage.finish();
        check('publish');
        if (session.isLive && !then.includes('destroy')) {
          expect(stage.written).toBe(stage.answered.at(-1));
          expect(session.stored).toMatchObject([{ feedId: node.live[0]?.feedId }]);
          published += 1;
        }
        await media.destroy();
        await stage.finish();
        // Another gateway may have claimed the handle of a session that this one does not hold.
        if (session.isLive) expect(node.live).toEqual([]);
        expect(session.logged.filter(({ level }) => level === 'error')).toEqual([]);
      }),
      { numRuns: 200 },
    );
    expect(published).toBeGreaterThan(20);
  });
});
