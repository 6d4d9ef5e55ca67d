import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type wrtc from '@roamhq/wrtc';
import { eventually } from '@callplane/testing';
import type { Call } from './call.js';
import { connect } from './connect.js';
import type { CallplaneError } from './errors.js';
import type { Platform } from './platform.js';
import type { ServerMessage } from './protocol.generated.js';
import {
  nodePlatform,
  participant,
  startScriptedGateway,
  welcome,
  type ScriptedConnection,
} from './scripted-gateway.testkit.js';

// Real peer connections on both sides, without a browser: the gateway's side answers as a media server does.
let library: typeof wrtc;
const closers: (() => unknown)[] = [];
beforeAll(async () => {
  ({ default: library } = (await import('@roamhq/wrtc')) as unknown as { default: typeof wrtc });
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function join(url: string): Promise<Call> {
  const RTCPeerConnection = library.RTCPeerConnection as unknown as Platform['RTCPeerConnection'];
  const call = await connect({ url, token: 'jwt', platform: { ...nodePlatform, RTCPeerConnection } });
  closers.push(() => call.leave());
  return call;
}
function remotePeer(): RTCPeerConnection {
  const peer = new library.RTCPeerConnection();
  closers.push(() => peer.close());
  return peer;
}
function newTrack(kind: 'audio' | 'video'): MediaStreamTrack {
  const { RTCAudioSource, RTCVideoSource } = library.nonstandard;
  const source = kind === 'audio' ? new RTCAudioSource() : new RTCVideoSource();
  const track = source.createTrack();
  closers.push(() => track.stop());
  return track;
}
/** The session id of the description: another peer connection has another. */
const originOf = (sdp: string) => /^o=\S+ \d+/m.exec(sdp)![0];
const publishesOf = ({ received }: ScriptedConnection) => received.filter((message) => message.type === 'publish');

/** A gateway that publishes for real; `refuse` names the code with which it answers the next ones instead. */
async function startPublishingGateway() {
  const refuse: string[] = [];
  const peers: RTCPeerConnection[] = [];
  let peer: RTCPeerConnection | undefined;
  let origin = '';
  const gateway = await startScriptedGateway({
    publish: ({ id, sdp }, connection) => {
      const code = refuse.shift();
      if (code !== undefined) return { type: 'error', code, message: 'No.' } as ServerMessage;
      if (peer === undefined || originOf(sdp) !== origin) {
        peer = remotePeer();
        peers.push(peer);
        origin = originOf(sdp);
        peer.onicecandidate = ({ candidate }) =>
          connection.send({ type: 'candidate', target: 'publisher', candidate: candidate?.toJSON() as never });
      }
      const answering = peer;
      void (async () => {
        await answering.setRemoteDescription({ type: 'offer', sdp });
        await answering.setLocalDescription(await answering.createAnswer());
        // Candidates overtake the answer.
        await new Promise((resolve) => setTimeout(resolve, 50));
        connection.send({ type: 'published', replyTo: id!, sdp: answering.localDescription!.sdp });
      })();
      return undefined;
    },
    candidate: ({ candidate }) => {
      if (candidate !== null) void peer?.addIceCandidate(candidate).catch(() => undefined);
      return undefined;
    },
  });
  return { ...gateway, refuse, peers };
}

describe('publishing', () => {
  test('several tracks at once share one offer, connect, and a further one is added to it', async () => {
    const gateway = await startPublishingGateway();
    const call = await join(gateway.url);
    const connection = await gateway.connection(0);
    const [microphone] = await call.publish(newTrack('audio'), { source: 'microphone' });
    expect(microphone).toMatchObject({ trackId: 'microphone', kind: 'audio', muted: false });
    await call.publish(newTrack('video'), { source: 'camera', muted: true });
    await call.publish(newTrack('video'), { source: 'screen', trackId: 'slides' });
    expect([...call.tracks.keys()]).toEqual(['microphone', 'camera', 'slides']);
    expect(publishesOf(connection).at(-1)!.tracks).toEqual([
      { trackId: 'microphone', mid: '0', source: 'microphone', muted: false },
      { trackId: 'camera', mid: '1', source: 'camera', muted: true },
      { trackId: 'slides', mid: '2', source: 'screen', muted: false },
    ]);
    expect(gateway.peers).toHaveLength(1);
    await eventually(() => gateway.peers[0]!.connectionState === 'connected');
  });

  test('a second track from the same source gets a name of its own', async () => {
    const gateway = await startPublishingGateway();
    const call = await join(gateway.url);
    await call.publish(newTrack('video'), { source: 'screen' });
    const [second] = await call.publish(newTrack('video'), { source: 'screen' });
    expect(second!.trackId).toBe('screen-2');
  });

  test('what the gateway refuses is not published, and what was goes on', async () => {
    const gateway = await startPublishingGateway();
    const call = await join(gateway.url);
    await call.publish(newTrack('audio'), { source: 'microphone' });
    gateway.refuse.push('permission_denied');
    const refused = call.publish(newTrack('video'), { source: 'camera' });
    await expect(refused).rejects.toMatchObject({ code: 'permission_denied' });
    expect([...call.tracks.keys()]).toEqual(['microphone']);
    await call.publish(newTrack('video'), { source: 'camera' });
    expect(gateway.peers).toHaveLength(1);
    expect(
      publishesOf(await gateway.connection(0))
        .at(-1)!
        .tracks.map(({ trackId }) => trackId),
    ).toEqual(['microphone', 'camera']);
  });

  test('after the media server has lost it, the same tracks are published over a new connection', async () => {
    const gateway = await startPublishingGateway();
    const call = await join(gateway.url);
    const connection = await gateway.connection(0);
    await call.publish(newTrack('audio'), { source: 'microphone' });
    await call.publish(newTrack('video'), { source: 'camera' });
    await call.mute('camera');
    gateway.refuse.push('media_unavailable', 'unavailable');
    connection.send({ type: 'mediaReset', targets: ['publisher'] });
    await eventually(() => gateway.peers.length === 2);
    await eventually(() => gateway.peers[1]!.connectionState === 'connected');
    expect(publishesOf(connection).at(-1)!.tracks).toMatchObject([
      { trackId: 'microphone', muted: false },
      { trackId: 'camera', muted: true },
    ]);
  });

  test('what may not be published again is lost, and said', async () => {
    const gateway = await startPublishingGateway();
    const call = await join(gateway.url);
    await call.publish(newTrack('audio'), { source: 'microphone' });
    const problems: CallplaneError[] = [];
    const lost: string[] = [];
    call.on('problem', (error) => problems.push(error));
    call.on('localTrackUnpublished', ({ trackId }) => lost.push(trackId));
    gateway.refuse.push('permission_denied');
    (await gateway.connection(0)).send({ type: 'mediaReset', targets: ['publisher'] });
    await eventually(() => problems.length > 0);
    expect(problems).toMatchObject([{ code: 'permission_denied' }]);
    expect(lost).toEqual(['microphone']);
    expect(call.tracks.size).toBe(0);
  });

  test('a connection that is lost while publishing makes it publish over the next one', async () => {
    let cuts = 1;
    const gateway = await startScriptedGateway({
      publish: (message, connection) => {
        if (cuts-- > 0) connection.cut();
        else {
          const peer = remotePeer();
          void peer
            .setRemoteDescription({ type: 'offer', sdp: message.sdp })
            .then(async () => peer.setLocalDescription(await peer.createAnswer()))
            .then(() => connection.send({ type: 'published', replyTo: message.id!, sdp: peer.localDescription!.sdp }));
        }
        return undefined;
      },
      resume: () => welcome({ resumed: true, media: { state: 'up', continued: false } }),
    });
    const call = await join(gateway.url);
    await call.publish(newTrack('audio'), { source: 'microphone' });
    expect([...call.tracks.keys()]).toEqual(['microphone']);
    expect((await gateway.connection(1)).received.map(({ type }) => type)).toContain('publish');
  });

  test('the last track takes the connection with it', async () => {
    const gateway = await startPublishingGateway();
    const call = await join(gateway.url);
    await call.publish(newTrack('audio'), { source: 'microphone' });
    await call.publish(newTrack('video'), { source: 'camera' });
    await call.unpublish('camera');
    const { received } = await gateway.connection(0);
    expect(
      publishesOf(await gateway.connection(0))
        .at(-1)!
        .tracks.map(({ trackId }) => trackId),
    ).toEqual(['microphone']);
    await call.unpublish();
    expect(received.at(-1)).toMatchObject({ type: 'unpublish' });
    expect(call.tracks.size).toBe(0);
  });

  test('without the permission nothing is sent', async () => {
    const gateway = await startScriptedGateway({ join: () => welcome({ permissions: ['room:join'] }) });
    const call = await join(gateway.url);
    const refused = call.publish(newTrack('audio'), { source: 'microphone' });
    await expect(refused).rejects.toMatchObject({ code: 'permission_denied' });
    expect(publishesOf(await gateway.connection(0))).toHaveLength(0);
  });
});

describe('receiving', () => {
  async function offer(connection: ScriptedConnection, peer: RTCPeerConnection, offerId: number): Promise<void> {
    await peer.setLocalDescription(await peer.createOffer());
    connection.send({
      type: 'offer',
      offerId,
      sdp: peer.localDescription!.sdp,
      tracks: [{ participantId: 'ada', trackId: 'camera', mid: '0' }],
    });
  }
  const ada = participant('ada', { tracks: [{ trackId: 'camera', kind: 'video', source: 'camera', muted: false }] });

  test('an offer is answered, its track handed over; after a reset the next offer makes a new connection', async () => {
    let peer = remotePeer();
    const gateway = await startScriptedGateway({
      join: () => welcome({ participants: [ada] }),
      answer: ({ sdp }) => {
        void peer.setRemoteDescription({ type: 'answer', sdp });
        return { type: 'ok' };
      },
      candidate: ({ target, candidate }) => {
        if (target === 'subscriber' && candidate !== null) void peer.addIceCandidate(candidate).catch(() => undefined);
        return undefined;
      },
    });
    const call = await join(gateway.url);
    const connection = await gateway.connection(0);
    const heard: string[] = [];
    call.on('trackSubscribed', ({ trackId, mediaStreamTrack }) => heard.push(`+${trackId} ${mediaStreamTrack!.kind}`));
    call.on('trackUnsubscribed', ({ trackId }) => heard.push(`-${trackId}`));
    peer.onicecandidate = ({ candidate }) =>
      connection.send({ type: 'candidate', target: 'subscriber', candidate: candidate?.toJSON() as never });
    peer.addTransceiver('video', { direction: 'sendonly' });
    await offer(connection, peer, 7);
    await eventually(() => heard.length === 1);
    expect(connection.received.find(({ type }) => type === 'answer')).toMatchObject({ offerId: 7 });
    await eventually(() => peer.connectionState === 'connected');

    connection.send({ type: 'mediaReset', targets: ['subscriber'] });
    peer = remotePeer();
    peer.addTransceiver('video', { direction: 'sendonly' });
    await offer(connection, peer, 8);
    await eventually(() => heard.length === 3);
    expect(heard).toEqual(['+camera video', '-camera', '+camera video']);
  });

  test('an offer that cannot be used is a problem and not the end', async () => {
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url);
    const problem = new Promise((resolve) => call.once('problem', resolve));
    (await gateway.connection(0)).send({ type: 'offer', offerId: 1, sdp: 'v=nothing', tracks: [] });
    expect(await problem).toMatchObject({ code: 'invalid_sdp' });
    expect(call.state).toBe('connected');
  });
});
