import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { hostIPv4 } from '@callplane/local-servers';
import { createRtcPeer, eventually, startTestJanus, stopAtEnd } from '@callplane/testing';
import { nodeOn, startSender, UP_WITHIN_MS } from './node.testkit.js';

/** infra/janus/nack-loop.patch. Debian's own package repeats half of the packets. */

const LOST = 8;
const isRtcp = (packet: Buffer) => packet[0]! >> 6 === 2 && packet[1]! >= 192 && packet[1]! <= 223;
const isRtp = (packet: Buffer) => packet[0]! >> 6 === 2 && !isRtcp(packet);

/** A line from a receiver to a port of Janus that loses packets of video, and then lets one request for them pass. */
async function startLine(janusPort: number, video: number, repeated: number | undefined) {
  const host = hostIPv4();
  const [front, back] = [createSocket('udp4'), createSocket('udp4')];
  let toLose = 0;
  let receiverPort = 0;
  const lost = new Set<number>();
  let repeats = 0;
  front.bind(0, host).on('message', (packet, { port }) => {
    receiverPort = port;
    if (repeats === 0 || !isRtcp(packet)) back.send(packet, janusPort, host);
  });
  back.bind(0, host).on('message', (packet) => {
    if (isRtp(packet)) {
      const [type, number] = [packet[1]! & 127, packet.readUInt16BE(2)];
      if (type === repeated || lost.has(number)) repeats += 1;
      else if (type === video && toLose > 0) {
        toLose -= 1;
        lost.add(number);
        return;
      }
    }
    front.send(packet, receiverPort, host);
  });
  await Promise.all([once(front, 'listening'), once(back, 'listening')]);
  stopAtEnd(async () => {
    for (const socket of [front, back]) await new Promise<void>((resolve) => socket.close(() => resolve()));
  });
  return {
    /** For the receiver. */
    port: front.address().port,
    /** For Janus. */
    candidate: `candidate:1 1 udp 2122260223 ${host} ${back.address().port} typ host`,
    lose: (count: number) => void (toLose = count),
    repeats: () => repeats,
  };
}

test('Janus repeats every packet that one request asks for', async () => {
  const node = nodeOn(await startTestJanus());
  await node.untilUp(UP_WITHIN_MS);
  await node.ensureRoom('room');
  const sender = await startSender(node, 'room', 'ada-1');
  const subscriber = await (await node.openSession()).attachSubscriber('room', 'receiver');
  const offer = await subscriber.update({ add: [{ feedId: 'ada-1', mid: '1' }], remove: [] });
  const sdp = offer!.sdp;
  const port = /^a=candidate:\S+ 1 udp \d+ \S+ (\d+) typ host/im.exec(sdp)![1]!;
  const video = /^a=rtpmap:(\d+) VP8\//m.exec(sdp)![1]!;
  const repeated = new RegExp(`^a=fmtp:(\\d+) apt=${video}\\b`, 'm').exec(sdp)?.[1];
  const line = await startLine(Number(port), Number(video), repeated === undefined ? undefined : Number(repeated));

  const receiver = await createRtcPeer();
  const answer = await receiver.answer(sdp.replaceAll(` ${port} typ host`, ` ${line.port} typ host`));
  const withoutCandidates = answer.replaceAll(/^a=candidate:.*\r\n/gm, '');
  await subscriber.answer(withoutCandidates.replace(/^a=ice-pwd:.*\r\n/m, `$&a=${line.candidate}\r\n`));
  await eventually(() => receiver.framesReceived('video') > 15);
  line.lose(LOST);
  await eventually(() => line.repeats() >= LOST, { timeoutMs: 10_000 }).catch(() => undefined);
  expect(line.repeats()).toBe(LOST);
  sender.peer.close();
});
