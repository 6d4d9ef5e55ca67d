import { afterEach, describe, expect, jest, test } from '@jest/globals';
import type { TrackState } from '@callplane/db';
import { FakeNode, FakeSession, Gate, mediaError, placesOn, publishRequest, settled } from './media.testkit.js';
import { SessionMedia } from './session-media.js';

const opened: SessionMedia[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((media) => media.destroy()));
});

function setUp(...held: string[]) {
  const gate = new Gate();
  gate.hold(...held);
  const [node, session, server] = [new FakeNode(gate), new FakeSession(gate), { isUp: true }];
  const media = new SessionMedia(session.deps(placesOn(node, server)), session.asOwner);
  opened.push(media);
  const reconnect = () => {
    session.isConnected = false;
    media.onConnectionLost();
    session.connectionNumber += 1;
    const continued = media.resumed(true);
    session.isConnected = true;
    media.onWelcomed();
    return continued;
  };
  media.readPlacement();
  media.onWelcomed();
  return { gate, node, session, media, server, reconnect };
}
const outcomeOf = (request: Promise<unknown>) =>
  request.then(
    () => 'ok',
    (error: unknown) => (error as { code?: string }).code,
  );

/** Publishes, and lets media flow. */
async function publish({ media, node }: ReturnType<typeof setUp>, peerConnection = 1): Promise<void> {
  await media.publish(publishRequest(peerConnection));
  node.live.at(-1)!.emit('connected');
  await settled();
}

describe('the media of a session', () => {
  test('in an encrypted room takes only tracks whose client says that it encrypts them', async () => {
    const { media, session, node } = setUp();
    session.encryption = 'required';
    const request = publishRequest();
    expect(await outcomeOf(media.publish(request))).toBe('room_encrypted');
    expect(await outcomeOf(media.publish({ ...request, encrypted: false }))).toBe('room_encrypted');
    const other = { ...request, sdp: request.sdp.replace('opus/48000/2', 'PCMU/8000'), encrypted: true };
    expect(await outcomeOf(media.publish(other))).toBe('room_encrypted');
    expect(node.handles).toEqual([]);
    expect(await outcomeOf(media.publish({ ...request, encrypted: true }))).toBe('ok');
  });

  test('does not publish on a media server that went down while the room was read', async () => {
    const stage = setUp('load');
    const { gate, session, media, node, server } = stage;
    await publish(stage);
    node.live[0]!.emit('closed', 'kicked');
    const request = outcomeOf(media.publish(publishRequest(2)));
    server.isUp = false;
    gate.open('load');
    expect(await request).toBe('media_unavailable');
    expect(node.live).toEqual([]);
    expect(session.of('mediaReset')).toEqual([]);
    server.isUp = true;
    media.onPlacement();
    expect(session.of('mediaReset')).toEqual([{ type: 'mediaReset', targets: ['publisher'] }]);
  });

  test('tells the client of a publisher that was lost while its tracks were being written', async () => {
    const stage = setUp('publishTracks');
    const { gate, session, media, node } = stage;
    const request = media.publish(publishRequest());
    await settled();
    node.live[0]!.emit('connected');
    await settled();
    session.isConnected = false;
    node.live[0]!.emit('closed', 'ICE failed');
    await settled();
    gate.open('publishTracks', true);
    await request;
    session.isConnected = true;
    media.onPlacement();
    expect(session.of('mediaReset')).toEqual([{ type: 'mediaReset', targets: ['publisher'] }]);
  });

  test('writes a mute that comes during the publication after it', async () => {
    const stage = setUp('publishTracks');
    const { gate, session, media } = stage;
    await publish(stage);
    const muted = media.publisher.mute('mic', true);
    await settled();
    gate.open('publishTracks', true);
    await muted;
    expect(session.stored).toMatchObject([{ trackId: 'mic', muted: true }]);
  });

  test('resets the half that is lost when a client resumes, and keeps the other one', async () => {
    const stage = setUp();
    const { session, node } = stage;
    await publish(stage);
    session.isConnected = false;
    node.live[0]!.emit('closed', 'kicked');
    await settled();
    expect(stage.reconnect()).toBe(true);
    expect(session.of('mediaReset')).toEqual([{ type: 'mediaReset', targets: ['publisher'] }]);
  });

  test('keeps the tracks of an earlier offer if the media server refuses a later one', async () => {
    const stage = setUp();
    const { gate, session, media, node } = stage;
    await publish(stage);
    gate.hold('offer');
    const request = outcomeOf(media.publish(publishRequest(1)));
    await settled();
    gate.open('offer', mediaError('invalid_sdp'));
    expect(await request).toBe('invalid_sdp');
    await settled();
    expect(node.live).toHaveLength(1);
    expect(session.stored).toHaveLength(1);
    expect(session.of('mediaReset')).toEqual([]);
  });

  test('notes where the media is once the tracks are written, and once they are not any more', async () => {
    const stage = setUp('publishTracks');
    const { gate, session, media } = stage;
    await publish(stage);
    expect(media.record).toMatchObject({ publisher: null });
    const before = session.changes;
    gate.open('publishTracks', true);
    await settled();
    expect(media.record).toMatchObject({ publisher: { handle: 1 } });
    expect(session.changes).toBe(before + 1);
    await media.unpublish();
    expect(session.changes).toBe(before + 2);
  });

  test('is not relayed if the track was muted over an earlier peer connection', async () => {
    const stage = setUp('publishTracks');
    const { session, node } = stage;
    const [mic] = publishRequest().tracks;
    session.stored = [{ ...mic!, kind: 'audio', feedId: 'earlier', muted: true }];
    await publish(stage);
    // The media server knows before the others do.
    expect([stage.gate.waits('publishTracks'), node.did]).toEqual([true, ['moderate sess_1-1-1/0 true']]);
    expect(session.stored).toMatchObject([{ feedId: 'earlier' }]);
  });
});

describe('a client that does not publish again', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  test.each([
    ['loses its tracks', 1],
    ['costs no write if it had none', 0],
  ])('%s', async (_, writes) => {
    const stage = setUp();
    const { session, media, node } = stage;
    if (writes > 0) await publish(stage);
    jest.useFakeTimers();
    const unpublishAll = jest.spyOn(session.writes, 'unpublishAll');
    expect(media.resumed(false)).toBe(false);
    await jest.advanceTimersByTimeAsync(11_000);
    expect(unpublishAll).toHaveBeenCalledTimes(writes);
    expect([session.stored, node.live]).toEqual([[], []]);
  });
});

describe('the media of a session of another gateway', () => {
  const STATE = {
    connection: 1,
    nodeId: 'm1',
    generation: 1,
    janusSession: 7,
    publisher: null as object | null,
    subscriber: null,
    choices: [['part_2/cam', { selected: false, paused: false }]],
  };
  const MIC = { trackId: 'mic', kind: 'audio', source: 'microphone', mid: '0', feedId: 'feed', muted: false } as const;

  /** Resumes the session at this gateway. */
  async function resume({
    record = STATE as object | null,
    tracks = [] as TrackState[],
    clientPeers = undefined as Peers,
  }) {
    const node = new FakeNode(new Gate());
    const session = new FakeSession(node.gate);
    session.stored = tracks;
    session.connectionNumber = 2;
    session.isConnected = false;
    const media = new SessionMedia(session.deps(placesOn(node)), session.asOwner);
    opened.push(media);
    media.expectTakeOver();
    const resumed = {
      media: record,
      previousConnection: 1,
      clientHasPeers: true,
      clientPeers,
      answeredOffer: undefined,
      tracks,
    };
    await media.takeOver(resumed);
    const continued = media.resumed(true);
    session.isConnected = true;
    media.onWelcomed();
    const resets = session.of('mediaReset').flatMap(({ targets }) => targets);
    return { continued, resets, choices: media.record?.choices, node, media, session };
  }
  type Peers = ('publisher' | 'subscriber')[] | undefined;
  const publisher = { handle: 1, feedId: 'feed', peerConnection: '- 1' };

  test('keeps the choices of its client if the publisher alone continues', async () => {
    const { continued, resets, choices } = await resume({ record: { ...STATE, publisher }, tracks: [MIC] });
    expect({ continued, resets, choices }).toEqual({
      continued: true,
      resets: ['subscriber'],
      choices: STATE.choices,
    });
  });

  test('keeps the region of its client', async () => {
    const { media } = await resume({ record: { ...STATE, publisher, region: 'eu-west' }, tracks: [MIC] });
    expect(media.record).toMatchObject({ region: 'eu-west', nodeId: 'm1' });
  });

  test('of an encoder whose packets had stopped before is silent from now on, unless they arrive again', async () => {
    const whip = { handle: 1, offer: 'v=0', tracks: [], isSilent: true };
    const silent = await resume({ record: { ...STATE, publisher, whip }, tracks: [MIC] });
    const flowing = await resume({
      record: { ...STATE, publisher, whip: { ...whip, isSilent: false } },
      tracks: [MIC],
    });
    const silentMs = ({ media }: typeof silent) => media.publisher.silentMs(performance.now() + 15_000);
    expect([silentMs(silent) >= 15_000, silentMs(flowing)]).toEqual([true, 0]);
    expect([silent, flowing].map(({ media }) => media.publisher.whipRecord?.isSilent)).toEqual([true, undefined]);
    const { changes } = silent.session;
    silent.node.live[0]!.emit('receiving', '0', 0, true);
    expect([silentMs(silent), silent.media.publisher.whipRecord?.isSilent]).toEqual([0, undefined]);
    expect(silent.session.changes).toBe(changes + 1);
    flowing.node.live[0]!.emit('receiving', '0', 0, false);
    expect(flowing.media.publisher.whipRecord?.isSilent).toBe(true);
  });

  test.each<[string, Parameters<typeof resume>[0], object]>([
    ['of a client without peer connections resets nothing', { clientPeers: [] }, { continued: true, resets: [] }],
    ['resets only peers of the client', { clientPeers: ['subscriber'] }, { continued: true, resets: ['subscriber'] }],
    [
      'resets the receiving connection alone of a client that publishes',
      { record: { ...STATE, publisher }, tracks: [MIC], clientPeers: ['publisher', 'subscriber'] },
      { continued: true, resets: ['subscriber'] },
    ],
    [
      'continues without a reset if the client only publishes',
      { record: { ...STATE, publisher }, tracks: [MIC], clientPeers: ['publisher'] },
      { continued: true, resets: [] },
    ],
    [
      'resets the publisher if tracks are published that no peer connection sends',
      { tracks: [MIC], clientPeers: [] },
      { continued: true, resets: ['publisher'] },
    ],
    [
      'starts over if nothing is known, because choices are lost',
      { record: null, clientPeers: [] },
      { continued: false },
    ],
  ])('%s', async (_, resumed, expected) => {
    expect(await resume(resumed)).toMatchObject(expected);
  });
});
