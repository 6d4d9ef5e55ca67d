import { connect, type Call } from './call.js';
import type { Platform } from './platform.js';
import type { ServerMessage } from './protocol.generated.js';
import {
  nodePlatform,
  participant,
  startScriptedGateway,
  testToken,
  welcome,
  type ScriptedConnection,
} from './scripted-gateway.testkit.js';
import { eventually } from '@callplane/testing';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type wrtc from '@roamhq/wrtc';

// Real peer connections on both sides, without a browser: the gateway's side answers as a media server does.
let library: typeof wrtc;
const closers: (() => unknown)[] = [];
beforeAll(async () => {
  ({ default: library } = (await import('@roamhq/wrtc')) as unknown as { default: typeof wrtc });
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function join(url: string, platform: Partial<Platform> = {}): Promise<Call> {
  const RTCPeerConnection = library.RTCPeerConnection as unknown as Platform['RTCPeerConnection'];
  const call = await connect({ url, token: testToken, platform: { ...nodePlatform, RTCPeerConnection, ...platform } });
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
/** @returns the description with all candidates, as media servers send it */
async function withCandidates(peer: RTCPeerConnection, description: RTCSessionDescriptionInit): Promise<string> {
  await peer.setLocalDescription(description);
  await eventually(() => peer.iceGatheringState === 'complete');
  return peer.localDescription!.sdp;
}
/** The session id in an SDP, which differs for every peer connection. */
const originOf = (sdp: string) => /^o=\S+ \d+/m.exec(sdp)![0];
const publishesOf = ({ received }: ScriptedConnection) => received.filter((message) => message.type === 'publish');

/**
 * A gateway that answers publishes with a real peer connection; `refuse` holds error codes that it sends instead for
 * the next ones.
 */
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
      }
      const answering = peer;
      void (async () => {
        await answering.setRemoteDescription({ type: 'offer', sdp });
        const answer = await withCandidates(answering, await answering.createAnswer());
        connection.send({ type: 'published', replyTo: id!, sdp: answer });
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
  test('several tracks at once share one offer, connect, and accept a further track', async () => {
    const gateway = await startPublishingGateway();
    const call = await join(gateway.url);
    const connection = await gateway.connection(0);
    const {
      published: [microphone],
    } = await call.publish(newTrack('audio'), { source: 'microphone' });
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

  test('a refused track is not published, and the published ones continue', async () => {
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

  test('publishes the same tracks over a new connection after the media server has lost the first', async () => {
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

  test('a publish whose connection is lost continues over the next one', async () => {
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

  test('a call whose path is lost is reconnecting until there is one again, or until nothing is sent', async () => {
    const gateway = await startPublishingGateway();
    let connection: RTCPeerConnection | undefined;
    let connectionState: RTCPeerConnectionState = 'connected';
    function WatchedPeerConnection(configuration: RTCConfiguration) {
      const real = new library.RTCPeerConnection(configuration);
      return (connection = Object.create(real, {
        connectionState: { get: () => connectionState },
      }) as RTCPeerConnection);
    }
    const become = (state: RTCPeerConnectionState) => {
      connectionState = state;
      connection!.onconnectionstatechange?.(new Event('connectionstatechange'));
    };
    const RTCPeerConnection = WatchedPeerConnection as unknown as Platform['RTCPeerConnection'];
    const call = await connect({
      url: gateway.url,
      token: testToken,
      platform: { ...nodePlatform, RTCPeerConnection },
    });
    closers.push(() => call.leave());
    const states: string[] = [];
    call.on('state', (state) => states.push(`${state} ${call.state}`));
    await call.publish(newTrack('audio'), { source: 'microphone' });
    for (const state of ['disconnected', 'failed', 'connected', 'disconnected'] as const) become(state);
    const lost = 'reconnecting reconnecting';
    expect(states).toEqual([lost, 'connected connected', lost]);
    await call.unpublish();
    expect(states).toEqual([lost, 'connected connected', lost, 'connected connected']);
  });

  test('an unexpected error of the browser rejects as internal, with its cause', async () => {
    const gateway = await startPublishingGateway();
    const defect = new TypeError('no such transceiver');
    class DefectivePeerConnection extends library.RTCPeerConnection {
      override addTransceiver(): never {
        throw defect;
      }
    }
    const RTCPeerConnection = DefectivePeerConnection as unknown as Platform['RTCPeerConnection'];
    const call = await connect({
      url: gateway.url,
      token: testToken,
      platform: { ...nodePlatform, RTCPeerConnection },
    });
    closers.push(() => call.leave());
    const refused = call.publish(newTrack('audio'), { source: 'microphone' });
    await expect(refused).rejects.toMatchObject({ code: 'internal', message: 'no such transceiver', cause: defect });
    expect(call.tracks.size).toBe(0);
  });
});

describe('receiving', () => {
  const carried = [{ participantId: 'ada', trackId: 'camera', mid: '0' }];
  async function offer(connection: ScriptedConnection, peer: RTCPeerConnection, offerId: number): Promise<void> {
    connection.send({ type: 'offer', offerId, sdp: await withCandidates(peer, await peer.createOffer()) });
  }
  const ada = participant('ada', { tracks: [{ trackId: 'camera', kind: 'video', source: 'camera', muted: false }] });

  test('answers an offer and delivers its track; after a reset the next offer makes a new connection', async () => {
    let peer = remotePeer();
    const gateway = await startScriptedGateway({
      join: () => welcome({ participants: [ada] }),
      answer: ({ sdp }, connection) => {
        void peer.setRemoteDescription({ type: 'answer', sdp });
        connection.send({ type: 'subscribed', tracks: carried });
        return { type: 'ok' };
      },
      candidate: ({ target, candidate }) => {
        if (target === 'subscriber' && candidate !== null) void peer.addIceCandidate(candidate).catch(() => undefined);
        return undefined;
      },
    });
    const call = await join(gateway.url);
    const connection = await gateway.connection(0);
    const emitted: string[] = [];
    call.on('trackSubscribed', ({ trackId, mediaStreamTrack }) =>
      emitted.push(`+${trackId} ${mediaStreamTrack!.kind}`),
    );
    call.on('trackUnsubscribed', ({ trackId }) => emitted.push(`-${trackId}`));
    peer.addTransceiver('video', { direction: 'sendonly' });
    await offer(connection, peer, 7);
    // The track may arrive before the answer has crossed the socket.
    await eventually(() => emitted.length === 1 && connection.received.some(({ type }) => type === 'answer'));
    expect(connection.received.find(({ type }) => type === 'answer')).toMatchObject({ offerId: 7 });
    await eventually(() => peer.connectionState === 'connected');

    connection.send({ type: 'mediaReset', targets: ['subscriber'] });
    peer = remotePeer();
    peer.addTransceiver('video', { direction: 'sendonly' });
    await offer(connection, peer, 8);
    await eventually(() => emitted.length === 3);
    expect(emitted).toEqual(['+camera video', '-camera', '+camera video']);
    // With it, another gateway can go on with the receiving connection.
    connection.cut();
    const resumed = await gateway.connection(1);
    await eventually(() => resumed.received.length > 0);
    expect(resumed.received[0]).toMatchObject({ type: 'resume', offerId: 8, peers: ['subscriber'] });
  });

  test('an unusable offer emits a problem and does not end the call', async () => {
    const gateway = await startScriptedGateway();
    const call = await join(gateway.url);
    const problem = new Promise((resolve) => call.once('problem', resolve));
    (await gateway.connection(0)).send({ type: 'offer', offerId: 1, sdp: 'v=nothing' });
    expect(await problem).toMatchObject({ code: 'invalid_sdp' });
    expect(call.state).toBe('connected');
  });
});
