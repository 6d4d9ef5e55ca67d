import { beforeAll, expect, test } from '@jest/globals';
import { eventually, relaysByUser } from '@callplane/testing';
import { openCall, type Call } from './call.testkit.js';
import { mediaFlows } from './pages.testkit.js';

/** `user-quota` of infra/coturn/turnserver.conf. */
const RELAYS_OF_A_SESSION_MAX = 24;
let stage: Call['stage'];
let enter: Call['enter'];

beforeAll(async () => {
  ({ stage, enter } = await openCall({ relay: true }));
});

test.each(['udp', 'tcp'] as const)('media flows over a relay alone with TURN over %s', async (way) => {
  const { coturn } = stage;
  const gateway = await stage.spawnSignaling({
    TURN_URLS: `turn:${coturn!.host}:${coturn!.port}?transport=${way}`,
  });
  const url = `${gateway.url.replace('http', 'ws')}/v1/signaling`;
  const roomId = await stage.newRoom();
  const relayed = { url, iceTransportPolicy: 'relay' } as const;
  const [ada, bob] = await Promise.all([enter(roomId, 'Ada', relayed), enter(roomId, 'Bob')]);
  await mediaFlows([ada, bob]);
  expect(await ada.ask('relays')).toEqual([way, way]);
  await gateway.stop();
});

test('a participant who publishes and receives everything uses at most a third of its relay quota', async () => {
  const roomId = await stage.newRoom();
  // A browser that finds a direct path first stops gathering, and may then have no relay at all.
  const relayed = { iceTransportPolicy: 'relay' } as const;
  const [ada, bob] = await Promise.all([enter(roomId, 'Ada', relayed), enter(roomId, 'Bob', relayed)]);
  await mediaFlows([ada, bob]);
  await ada.ask('shareScreen');
  await eventually(async () => (await bob.ask('others')).Ada.includes('screen'));
  const relays = [...(await relaysByUser(stage.coturn!)).values()];
  console.log('measured: relays of each session', relays);
  expect(relays.length).toBeGreaterThanOrEqual(2);
  expect(Math.max(...relays)).toBeLessThanOrEqual(RELAYS_OF_A_SESSION_MAX / 3);
});
