import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@callplane/testing';
import { mediaFlows, openBrowser, type Browsers, type JoinOptions, type ParticipantPage } from './pages.testkit.js';
import { openStage, signalingUrl, type Stage } from './stage.testkit.js';
import { startTcpProxy } from './tcp-proxy.testkit.js';

const SLOW_MS = 90_000;
let stage: Stage;
let browsers: Browsers;
const pages: ParticipantPage[] = [];

beforeAll(async () => {
  [stage, browsers] = await Promise.all([openStage({ relay: true }), openBrowser()]);
}, SLOW_MS);
afterEach(async () => {
  await Promise.all(pages.splice(0).map((page) => page.close()));
});

async function enter(roomId: string, name: string, options: Partial<JoinOptions> = {}): Promise<ParticipantPage> {
  const { token } = await stage.token(roomId, name);
  const participant = await browsers.newParticipant();
  pages.push(participant);
  await participant.join({ url: stage.url, token, publish: true, ...options });
  return participant;
}
const portOf = (url: string) => Number(new URL(url).port);
const joinsAndLeaves = async (roomId: string) =>
  (await stage.eventTypes(roomId)).filter((type) => ['participant.joined', 'participant.left'].includes(type));
const statesOf = async (one: ParticipantPage) =>
  (await one.events()).filter(({ name }) => name === 'state').map(({ what }) => what);

describe('when something is lost in mid-call', () => {
  test(
    'the signaling connection of one side: it resumes, media never stops, nobody leaves or joins',
    async () => {
      const proxy = await startTcpProxy([{ host: '127.0.0.1', port: portOf(stage.signaling.url) }]);
      const roomId = await stage.newRoom();
      const [ada, bob] = await Promise.all([
        enter(roomId, 'Ada', { url: signalingUrl(proxy.port) }),
        enter(roomId, 'Bob'),
      ]);
      await mediaFlows([ada, bob]);
      proxy.cut();
      await eventually(async () => (await ada.ask('state')) === 'reconnecting');
      await mediaFlows([ada, bob]);
      proxy.restore();
      await eventually(async () => (await ada.ask('state')) === 'connected');
      await mediaFlows([ada, bob]);
      await ada.ask('send', { text: 'back' });
      await eventually(async () =>
        (await bob.events()).some(({ name, what }) => name === 'message' && what.data.text === 'back'),
      );
      expect(await statesOf(ada)).toEqual(['reconnecting', 'connected']);
      expect(
        (await bob.events()).filter(({ name }) => /^participant(Joined|Left)$/.test(name)).map(({ name }) => name),
      ).toEqual((await bob.events()).some(({ name }) => name === 'participantJoined') ? ['participantJoined'] : []);
      expect(await joinsAndLeaves(roomId)).toEqual(['participant.joined', 'participant.joined']);
    },
    SLOW_MS,
  );

  test(
    'the whole network of one side, signaling and media: the call goes on when it is back',
    async () => {
      const { host, port } = stage.coturn!;
      const signalingProxy = await startTcpProxy([{ host: '127.0.0.1', port: portOf(stage.signaling.url) }]);
      const relayProxy = await startTcpProxy([{ host, port }], host);
      const gateway = await stage.spawnSignaling({ TURN_URLS: `turn:${host}:${relayProxy.port}?transport=tcp` });
      const gatewayProxy = await startTcpProxy([{ host: '127.0.0.1', port: portOf(gateway.url) }]);
      const roomId = await stage.newRoom();
      const [ada, bob] = await Promise.all([
        enter(roomId, 'Ada', { url: signalingUrl(gatewayProxy.port), iceTransportPolicy: 'relay' }),
        enter(roomId, 'Bob', { url: signalingUrl(signalingProxy.port) }),
      ]);
      await mediaFlows([ada, bob]);
      gatewayProxy.cut();
      relayProxy.cut();
      await eventually(async () => (await ada.ask('state')) === 'reconnecting');
      await delay(4_000);
      gatewayProxy.restore();
      relayProxy.restore();
      await eventually(async () => (await ada.ask('state')) === 'connected');
      await mediaFlows([ada, bob], { timeoutMs: 20_000 });
      expect(await joinsAndLeaves(roomId)).toEqual(['participant.joined', 'participant.joined']);
      await gateway.stop();
    },
    SLOW_MS,
  );

  test(
    'the media server is killed and started again: within 10 s everybody sees and hears everybody again',
    async () => {
      const roomId = await stage.newRoom();
      const both = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
      await mediaFlows(both);
      const killedAt = performance.now();
      stage.janus!.kill('SIGKILL');
      await eventually(async () => (await both[0].ask('mediaState')) === 'down');
      await stage.janus!.start();
      await mediaFlows(both, { timeoutMs: 20_000 });
      expect(performance.now() - killedAt).toBeLessThan(10_000);
      expect(await statesOf(both[0])).toEqual([]);
      expect(await joinsAndLeaves(roomId)).toEqual(['participant.joined', 'participant.joined']);
    },
    SLOW_MS,
  );

  test(
    'one of two gateways is killed: its clients go on over the other, and no event says that anybody left or joined',
    async () => {
      const [one, two] = await Promise.all([stage.spawnSignaling(), stage.spawnSignaling()]);
      const balancer = await startTcpProxy([one, two].map(({ url }) => ({ host: '127.0.0.1', port: portOf(url) })));
      const roomId = await stage.newRoom();
      const url = signalingUrl(balancer.port);
      // One after the other, so that they are on different instances.
      const ada = await enter(roomId, 'Ada', { url });
      const bob = await enter(roomId, 'Bob', { url });
      await mediaFlows([ada, bob]);
      one.kill('SIGKILL');
      await eventually(
        async () => (await statesOf(ada)).includes('connected') || (await statesOf(bob)).includes('connected'),
      );
      await mediaFlows([ada, bob], { timeoutMs: 20_000 });
      await ada.ask('send', { text: 'still here' });
      await eventually(async () => (await bob.events()).some(({ name }) => name === 'message'));
      expect(await joinsAndLeaves(roomId)).toEqual(['participant.joined', 'participant.joined']);
      await two.stop();
    },
    SLOW_MS,
  );
});
