import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { openCall, type Call } from '../browser/call.testkit.js';
import { mediaFlows } from '../browser/pages.testkit.js';

/** A call of two browsers over a Janus, without a TURN server. tests/browser/call.test.ts has the other cases. */

let stage: Call['stage'];
let enter: Call['enter'];
beforeAll(async () => {
  ({ stage, enter } = await openCall());
});

test('two participants exchange media, and a mute, a shared screen and a leave reach the other', async () => {
  const roomId = await stage.newRoom();
  const [ada, bob] = await Promise.all([enter(roomId, 'Ada'), enter(roomId, 'Bob')]);
  await mediaFlows([ada, bob]);

  await ada.ask('mute', 'microphone');
  await ada.ask('unmute', 'microphone');
  await ada.ask('send', { text: 'hello' });
  await eventually(async () =>
    (await bob.events()).some(({ name, by, what }) => name === 'message' && by === 'Ada' && what.data.text === 'hello'),
  );
  const shared = await ada.ask<string[]>('shareScreen');
  expect(shared).toContain('screen');
  await eventually(async () => (await bob.ask('others')).Ada.includes('screen'));
  await mediaFlows([ada, bob]);
  await ada.ask('unpublish', 'screen');
  await eventually(async () => !(await bob.ask('others')).Ada.includes('screen'));
  await mediaFlows([ada, bob]);
  await ada.ask('leave');
  await eventually(async () => Object.keys(await bob.ask('others')).length === 0);
  expect(await ada.ask('closeInfo')).toMatchObject({ reason: 'left' });
});
