import { beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually, startTcpProxy, type TestApp } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import { mediaFlows, type ParticipantPage } from './pages.testkit.js';
import { signalingUrl } from './stage.testkit.js';

let stage: Call['stage'];
let enter: Call['enter'];
let handedOver: Call['handedOver'];

beforeAll(async () => {
  ({ stage, enter, handedOver } = await openCall({ relay: true }));
});

const portOf = (url: string) => Number(new URL(url).port);
const joinsAndLeaves = async (roomId: string) =>
  (await stage.eventTypes(roomId)).filter((type) => ['participant.joined', 'participant.left'].includes(type));
const statesOf = async (one: ParticipantPage) =>
  (await one.events()).filter(({ name }) => name === 'state').map(({ what }) => what);

describe('losses during a call', () => {
  test('the call continues after one side lost its whole network, signaling and media', async () => {
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
    await mediaFlows([ada, bob]);
    expect(await joinsAndLeaves(roomId)).toEqual(['participant.joined', 'participant.joined']);
    await gateway.stop();
  });

  test('everybody receives media again within the grace after the media server is killed and restarted', async () => {
    const roomId = await stage.newRoom();
    const both = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
    await mediaFlows(both);
    const killedAt = performance.now();
    stage.janus.kill('SIGKILL');
    await eventually(async () => (await both[0].ask('mediaState')) === 'down');
    await stage.janus.start();
    await mediaFlows(both);
    expect(performance.now() - killedAt).toBeLessThan(15_000);
    expect(await statesOf(both[0])).toEqual([]);
    expect(await joinsAndLeaves(roomId)).toEqual(['participant.joined', 'participant.joined']);
  });

  test('clients of a drained and of a killed gateway continue over another one, and their media never stops', async () => {
    const gateways = await Promise.all([1, 2, 3].map(() => stage.spawnSignaling()));
    const [one, two, three] = gateways as [TestApp, TestApp, TestApp];
    const balancer = await startTcpProxy(gateways.map(({ url }) => ({ host: '127.0.0.1', port: portOf(url) })));
    const roomId = await stage.newRoom();
    const url = signalingUrl(balancer.port);
    // Joins one after the other, so that they are on different instances.
    const ada = await enter(roomId, 'Ada', { url });
    const bob = await enter(roomId, 'Bob', { url });
    const both = [ada, bob];
    await mediaFlows(both);
    const negotiations = () => Promise.all(both.map((page) => page.ask('negotiations')));
    const resumptions = async () => (await Promise.all(both.map(statesOf))).flat().filter((one) => one === 'connected');
    for (const [how, end] of [
      ['drain', () => one.stop()],
      ['SIGKILL', async () => two.kill('SIGKILL')],
    ] as const) {
      await Promise.all(both.map(handedOver));
      await Promise.all(both.map((page) => page.ask('measurePauses')));
      const [before, resumed] = [await negotiations(), (await resumptions()).length];
      await end();
      await eventually(async () => (await resumptions()).length > resumed);
      await mediaFlows(both);
      const pauses = await Promise.all(both.map((page) => page.ask('pauses')));
      process.stderr.write(`    measured: ${how}: longest pauses in ms, Ada and Bob: ${JSON.stringify(pauses)}\n`);
      // The same peer connections continue, without another negotiation.
      expect(await negotiations()).toEqual(before);
    }
    await ada.ask('send', { text: 'still here' });
    await eventually(async () => (await bob.events()).some(({ name }) => name === 'message'));
    expect(await joinsAndLeaves(roomId)).toEqual(['participant.joined', 'participant.joined']);
    await three.stop();
  });
});
