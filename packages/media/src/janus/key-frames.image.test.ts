import { test } from '@jest/globals';
import { eventually, startTestJanus } from '@callplane/testing';
import { nodeOn, startSender, UP_WITHIN_MS } from './node.testkit.js';

/** infra/janus/key-frames.patch. Debian's own package drops the second request. */
test('Janus sends on a request for a key frame that follows another at once', async () => {
  const node = nodeOn(await startTestJanus());
  await node.untilUp(UP_WITHIN_MS);
  await node.ensureRoom('room');
  const { peer, publisher } = await startSender(node, 'room', 'ada-1');
  // Janus asks for none before it has received video.
  await eventually(async () => {
    await publisher.requestKeyFrames();
    return (await peer.keyFrameRequests()) > 0;
  });
  const before = await peer.keyFrameRequests();
  await publisher.requestKeyFrames();
  await eventually(async () => (await peer.keyFrameRequests()) > before);
  peer.close();
});
