import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { MediaError } from '@callplane/media';
import fc from 'fast-check';
import type { SubscriberRecord } from './media-writes.js';
import { nextOfferId } from './receiving-peer.js';
import { ANSWER, Stage } from './subscriber.testkit.js';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('a subscriber', () => {
  test('reports tracks once the client has answered, and a switch without an offer', async () => {
    const stage = new Stage();
    await stage.join(...Array(30).keys());
    expect([stage.of('offer').length, stage.of('subscribed').length]).toEqual([1, 0]);
    await stage.receive();
    expect(stage.received).toHaveLength(25);
    const tracks = [0, 1, 2].flatMap((at) => [
      { participantId: `p${at}`, trackId: 'cam', paused: true },
      { participantId: `p${25 + at}`, trackId: 'cam' },
    ]);
    stage.subscribe(...tracks);
    await stage.settle();
    expect(stage.received).toEqual(expect.arrayContaining(['p25', 'p26', 'p27']));
    expect([stage.received.length, stage.of('offer').length, stage.handle?.did.includes('switch 3')]).toEqual([
      25,
      1,
      true,
    ]);
  });

  test('names the wanted layer in the switch, and needs no other request for it', async () => {
    const stage = new Stage();
    await stage.join(...Array(26).keys());
    await stage.receive();
    stage.subscribe({ participantId: 'p25', trackId: 'cam', layer: { spatial: 1 } });
    await stage.settle();
    expect(stage.received).toContain('p25');
    expect(stage.handle!.did.slice(-2)).toEqual(['answer', 'switch 1']);
    expect(stage.handle!.sections.find(({ stream }) => stream?.feedId === 'f25')).toMatchObject({ substream: 1 });
  });

  test('names chosen tracks that find no section, and gives them the next free one', async () => {
    const stage = new Stage({ autoSubscribe: false });
    for (let at = 0; at < 27; at += 1) stage.publish(at);
    stage.connect();
    const all = Array.from({ length: 27 }, (_, at) => ({ participantId: `p${at}`, trackId: 'cam' }));
    stage.subscribe(...all);
    await stage.settle();
    await stage.receive();
    expect(stage.of('subscriptionFailed')).toEqual([
      {
        type: 'subscriptionFailed',
        tracks: ['p25', 'p26'].map((participantId) => ({
          participantId,
          trackId: 'cam',
          code: 'too_many_tracks',
          message: expect.any(String),
        })),
      },
    ]);
    stage.unsubscribe({ participantId: 'p3', trackId: 'cam' });
    await stage.settle();
    expect(stage.received).toContain('p25');
    expect(stage.of('offer')).toHaveLength(1);
  });

  test('reports a track that the answer refuses, and does not request it again', async () => {
    const stage = new Stage();
    await stage.join(0, 1);
    const section = (mid: number, port: number) =>
      `m=video ${port} UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=recvonly\r\na=mid:${mid}\r\na=rtpmap:96 VP8/90000\r\n`;
    expect(await stage.answer(ANSWER + section(0, 0) + section(1, 9))).toBeNull();
    await stage.settle();
    expect(stage.of('subscriptionFailed')[0]?.tracks).toMatchObject([{ participantId: 'p0', code: 'track_refused' }]);
    expect(stage.received).toEqual(['p1']);
  });

  test('offers VP8 beside a codec that the client may lack, and reports the track without its codec', async () => {
    const stage = new Stage();
    stage.publish(0, 'av1');
    await stage.join(1, 2);
    const payloads = [...stage.of('offer')[0]!.sdp.matchAll(/^m=.*SAVPF (.*)/gm)].map(([, list]) => list?.trim());
    expect(payloads).toEqual(['98 96', '96', '96']);
    const section = (mid: number) =>
      `m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=recvonly\r\na=mid:${mid}\r\na=rtpmap:96 VP8/90000\r\n`;
    expect(await stage.answer([ANSWER, section(0), section(1), section(2)].join(''))).toBeNull();
    await stage.settle();
    expect(stage.of('subscriptionFailed')).toMatchObject([
      { tracks: [{ participantId: 'p0', code: 'track_refused' }] },
    ]);
    expect([stage.received, stage.handle?.sent]).toEqual([
      ['p1', 'p2'],
      ['f1/1', 'f2/1'],
    ]);
    expect([stage.of('offer').length, stage.lost]).toEqual([1, 0]);
  });

  test('repeats its offer and the received tracks after a resumption', async () => {
    const stage = new Stage();
    await stage.join(0);
    stage.disconnect();
    await jest.advanceTimersByTimeAsync(60_000);
    stage.connect();
    expect(stage.of('offer').map(({ offerId }) => offerId)).toEqual([1, 1]);
    await stage.receive();
    stage.disconnect();
    stage.connect();
    await stage.settle();
    expect(stage.of('subscribed').map(({ tracks }) => tracks.length)).toEqual([1, 1]);
  });

  test('restarts ICE with an offer, as soon as no other one is outstanding', async () => {
    const stage = new Stage();
    expect(() => stage.subscriber.restart()).toThrow('There is no receiving connection.');
    await stage.join(0);
    stage.subscriber.restart();
    stage.subscriber.restart();
    await stage.settle();
    expect(stage.of('offer')).toHaveLength(1);
    await stage.receive();
    expect([stage.of('offer').length, stage.handle?.did.filter((what) => what === 'restart').length]).toEqual([2, 1]);
    await stage.receive();
    stage.subscriber.restart();
    await stage.settle();
    expect([stage.of('offer').length, stage.received, stage.lost, stage.errors]).toEqual([3, ['p0'], 0, []]);
    expect(await stage.answer()).toBeNull();
  });

  test('asks for key frames of the video that is sent, once no change is in progress', async () => {
    const stage = new Stage();
    await stage.join(0, 1);
    stage.subscriber.refresh();
    stage.subscribe({ participantId: 'p1', trackId: 'cam', paused: true });
    await stage.settle();
    const asked = () => stage.handle?.did.filter((what) => what.startsWith('key frames'));
    expect(asked()).toEqual([]);
    await stage.receive();
    stage.subscriber.refresh();
    await stage.settle();
    expect(asked()?.at(-1)).toBe('key frames of 0');
    // A request for key frames resumes its sections. A section that is being paused is not among them.
    stage.subscribe({ participantId: 'p0', trackId: 'cam', paused: true });
    stage.subscriber.refresh();
    await stage.settle();
    expect(stage.handle?.did.slice(-2)).toEqual(['configure 1', 'key frames of ']);
    expect(stage.handle?.sent).toEqual([]);
    stage.disconnect();
    expect([asked()?.length, stage.errors]).toEqual([3, []]);
  });

  test('changes no settings before its connection is up, because publishers are asked for key frames then', async () => {
    const stage = new Stage();
    await stage.join(0, 1);
    stage.handle!.connects = false;
    await stage.receive();
    stage.subscribe(
      { participantId: 'p0', trackId: 'cam', layer: { spatial: 0 } },
      { participantId: 'p1', trackId: 'cam', paused: true },
    );
    await stage.settle();
    expect([stage.received, stage.handle!.did.at(-1)]).toEqual([['p0', 'p1'], 'answer']);
    stage.handle!.connect();
    await stage.settle();
    expect(stage.handle!.sections).toMatchObject([{ substream: 0, send: true }, { send: false }]);
    expect(stage.handle!.did.filter((what) => what.startsWith('configure'))).toEqual(['configure 2']);
  });

  test('gives up a client that does not answer, and begins again once it knows', async () => {
    const stage = new Stage();
    await stage.join(0);
    await jest.advanceTimersByTimeAsync(15_000);
    expect([stage.lost, stage.handle?.isDetached]).toEqual([1, true]);
    stage.publish(1);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(stage.handles).toHaveLength(1);
    stage.subscriber.unblock();
    await stage.settle();
    expect(stage.of('offer')).toHaveLength(2);
    expect(await stage.answer()).toBeNull();
  });

  test('pauses longer after each failure in a row, also if its client knows at once', async () => {
    const stage = new Stage();
    await stage.join(0);
    const pauses = [];
    for (const pauseMs of [250, 1000, 2000]) {
      stage.handle!.emit('closed', 'ICE failed');
      stage.subscriber.unblock();
      await jest.advanceTimersByTimeAsync(pauseMs - 1);
      const before = stage.handles.length;
      await jest.advanceTimersByTimeAsync(1);
      pauses.push([before, stage.handles.length]);
    }
    expect(pauses).toEqual([
      [1, 2],
      [2, 3],
      [3, 4],
    ]);
  });

  test('requests a stream again that the media server does not have, and says so after three attempts', async () => {
    const stage = new Stage();
    stage.publish(0);
    stage.published.clear();
    stage.connect();
    await jest.advanceTimersByTimeAsync(1_500);
    expect(stage.of('subscriptionFailed')).toEqual([]);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(stage.of('subscriptionFailed')[0]?.tracks).toMatchObject([{ participantId: 'p0', code: 'not_found' }]);
    stage.publish(0);
    await jest.advanceTimersByTimeAsync(1_500);
    await stage.receive();
    expect(stage.received).toEqual(['p0']);
  });

  test('reports the layers that its client wants, before a media section carries them', async () => {
    const stage = new Stage();
    stage.publish(0);
    stage.publish(1);
    stage.connect();
    expect([...stage.layers]).toEqual([
      ['p0/cam', 2],
      ['p1/cam', 2],
    ]);
    await stage.settle();
    await stage.receive();
    stage.subscribe(
      { participantId: 'p0', trackId: 'cam', layer: { spatial: 1 } },
      { participantId: 'p1', trackId: 'cam', paused: true },
    );
    expect([...stage.layers]).toEqual([['p0/cam', 1]]);
  });

  test('receives exactly the published tracks after any sequence of events, however its client and the media server behave', async () => {
    const at = fc.nat(29);
    const command = fc.oneof(
      fc.record({ type: fc.constant('publish' as const), at }),
      fc.record({ type: fc.constant('unpublish' as const), at }),
      fc.record({ type: fc.constant('answer' as const), at: fc.constant(0) }),
      fc.record({
        type: fc.constantFrom(
          ...(['invalid answer', 'disconnect', 'connect', 'close handle', 'fail', 'drop', 'down', 'up'] as const),
          ...(['unblock', 'no answer', 'attach fails', 'restart', 'settle'] as const),
        ),
        at: fc.constant(0),
      }),
      fc.record({ type: fc.constantFrom('choose' as const, 'pause' as const, 'decline' as const), at }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 30 }), async (commands) => {
        const stage = new Stage();
        for (const { type, at: number } of commands) {
          const track = { participantId: `p${number}`, trackId: 'cam' };
          const isThere = stage.entries.has(`p${number}/cam`);
          if (type === 'publish') stage.publish(number);
          else if (type === 'unpublish') stage.unpublish(number);
          else if (type === 'answer') await stage.answer();
          else if (type === 'invalid answer') await stage.answer('nonsense');
          else if (type === 'disconnect') stage.disconnect();
          else if (type === 'connect') stage.connect();
          else if (type === 'close handle') stage.handle?.emit('closed', 'ICE failed');
          else if (type === 'fail' && stage.handle !== undefined)
            stage.handle.failure = new MediaError('timeout', 'late');
          else if (type === 'drop') void stage.subscriber.drop();
          else if (type === 'down' || type === 'up') {
            stage.isUp = type === 'up';
            if (!stage.isUp) void stage.subscriber.drop();
            else stage.subscriber.wake();
          } else if (type === 'unblock') stage.subscriber.unblock();
          else if (type === 'no answer') await jest.advanceTimersByTimeAsync(15_000);
          else if (type === 'attach fails') stage.attachFailures = 1;
          else if (type === 'restart' && stage.subscriber.peer?.hasOffer === true) stage.subscriber.restart();
          else if (type === 'settle') await stage.settle();
          else if (type === 'choose' && isThere) stage.subscribe(track);
          else if (type === 'pause' && isThere) stage.subscribe({ ...track, paused: true });
          else if (type === 'decline' && isThere) stage.unsubscribe(track);
          // Other handles than the latest have been given up.
          for (const handle of stage.handles.slice(0, -1)) expect(handle.isDetached).toBe(true);
        }
        // Now everything works, and the client answers.
        stage.isUp = true;
        stage.attachFailures = 0;
        if (stage.handle !== undefined) stage.handle.failure = null;
        stage.connect();
        stage.subscriber.unblock();
        stage.subscriber.forget();
        stage.subscriber.wake();
        for (let rounds = 0; rounds < 5; rounds += 1) {
          await jest.advanceTimersByTimeAsync(31_000 * Number(rounds === 0));
          stage.subscriber.unblock();
          await stage.settle();
          await stage.answer();
          await stage.settle();
        }
        const names = [...stage.published.keys()];
        const sent = stage.handle?.isDetached === true ? [] : (stage.handle?.sent ?? []);
        expect(sent).toHaveLength(Math.min(25, names.length));
        expect(names).toEqual(expect.arrayContaining(sent));
        expect(stage.received).toEqual(sent.map((name) => name.replace(/^f(\d+).*/, 'p$1')).sort());
        expect(stage.errors).toEqual([]);
        await stage.subscriber.close();
        expect(stage.handles.every(({ isDetached }) => isDetached)).toBe(true);
        expect(jest.getTimerCount()).toBe(0);
      }),
      { numRuns: 100 },
    );
  });
});

describe('a subscriber of another gateway', () => {
  /** A gateway whose client receives two tracks, with two more in the room. */
  async function receiving() {
    const before = new Stage({ autoSubscribe: false });
    for (let at = 0; at < 4; at += 1) before.publish(at);
    before.connect();
    before.subscribe(...[0, 1].map((at) => ({ participantId: `p${at}`, trackId: 'cam' })));
    await before.settle();
    await before.receive();
    return before;
  }

  /** The gateway that continues after a hand-over, with its client. */
  async function goingOn(before: Stage, record: SubscriberRecord | null): Promise<Stage> {
    const after = new Stage({ autoSubscribe: false });
    expect(await after.claim(before, record)).toBe(true);
    after.subscriber.selector.restore(before.subscriber.selector.choices);
    after.connect();
    return after;
  }
  const recordOf = ({ subscriber }: Stage) => JSON.parse(JSON.stringify(subscriber.record)) as SubscriberRecord | null;
  const sectionsOf = (stage: Stage) =>
    new Map(
      stage
        .of('subscribed')
        .at(-1)
        ?.tracks.map(({ mid, participantId }) => [mid, participantId]),
    );

  test('sends the tracks that its client is told, although the other gateway changed sections after its last record', async () => {
    const before = await receiving();
    const record = recordOf(before);
    // The sections change places, one pauses, and another layer is chosen.
    await before.handle!.switch([
      { feedId: 'f1', mid: '1', subscriberMid: '0' },
      { feedId: 'f0', mid: '1', subscriberMid: '1' },
    ]);
    await before.handle!.configure([
      { subscriberMid: '0', paused: true },
      { subscriberMid: '1', spatial: 0 },
    ]);
    const after = await goingOn(before, record);
    await after.settle();
    expect([...sectionsOf(after)]).toEqual([
      ['0', 'p1'],
      ['1', 'p0'],
    ]);
    expect(after.handle!.sections).toMatchObject([
      { stream: { feedId: 'f1' }, send: true, substream: 2 },
      { stream: { feedId: 'f0' }, send: true, substream: 2 },
    ]);
    expect([after.lost, after.errors]).toEqual([0, []]);
  });

  test('tells its client the received tracks after a restart of ICE right after the hand-over', async () => {
    const before = await receiving();
    const record = recordOf(before);
    await before.handle!.switch([
      { feedId: 'f1', mid: '1', subscriberMid: '0' },
      { feedId: 'f0', mid: '1', subscriberMid: '1' },
    ]);
    const after = await goingOn(before, record);
    after.subscriber.restart();
    await after.settle();
    expect(after.of('offer')).toHaveLength(1);
    await after.receive();
    expect([...sectionsOf(after)]).toEqual([
      ['0', 'p1'],
      ['1', 'p0'],
    ]);
  });

  test('reports that nothing is received any more, because the client may believe the opposite', async () => {
    const before = await receiving();
    const record = recordOf(before);
    for (const at of [0, 1]) before.unpublish(at);
    const after = new Stage({ autoSubscribe: false });
    expect(await after.claim(before, record)).toBe(true);
    after.connect();
    await after.settle();
    expect(after.of('subscribed')).toMatchObject([{ tracks: [] }]);
  });

  test('gives up if the client has an offer to answer that only the other gateway knows', async () => {
    const before = await receiving();
    const record = recordOf(before);
    before.subscribe({ participantId: 'p2', trackId: 'cam' });
    await before.settle();
    expect([before.of('offer').length, before.subscriber.record]).toEqual([2, null]);
    const after = new Stage({ autoSubscribe: false });
    expect([await after.claim(before, record), after.handle!.isDetached]).toEqual([false, true]);
    after.connect();
    await after.settle();
    expect(after.of('subscribed')).toEqual([]);
  });

  test('gives up if the media server does not list the sections', async () => {
    const before = await receiving();
    const after = new Stage({ autoSubscribe: false });
    before.handle!.failure = new MediaError('timeout', 'late');
    expect([await after.claim(before, recordOf(before)), after.handle!.isDetached]).toEqual([false, true]);
  });

  test('corrects the changes of a late request of the other gateway', async () => {
    const before = await receiving();
    const after = await goingOn(before, recordOf(before));
    await after.settle();
    const { sent } = after.handle!;
    await after.handle!.configure([{ subscriberMid: '0', paused: true }]);
    await after.handle!.switch([{ feedId: 'f3', mid: '1', subscriberMid: '1' }]);
    after.handle!.emit('disturbed');
    await after.settle();
    expect(after.handle!.sent.length).toBe(sent.length);
    const told = [...sectionsOf(after)].map(([mid, participantId]) => [mid, participantId.replace('p', 'f')]);
    const actual = after.handle!.sections.map(({ mid, stream, send }) => [mid, send ? stream?.feedId : null]);
    expect(told).toEqual(actual);
  });
});

test('the offers of each connection of a session have a range of ids of their own', () => {
  expect([0, 1, 999_999].map((before) => nextOfferId(before, { connectionNumber: 1 }))).toEqual([1, 2, 1_000_000]);
  expect([0, 5, 1_000_000].map((before) => nextOfferId(before, { connectionNumber: 2 }))).toEqual([
    1_000_001, 1_000_001, 1_000_001,
  ]);
  expect(nextOfferId(1_000_001, { connectionNumber: 2 })).toBe(1_000_002);
});
