import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from '@jest/globals';
import { hostIPv4 } from '@callplane/local-servers';
import { createRtcPeer, eventually, startTestJanus, stopAtEnd } from '@callplane/testing';
import { nodeOn, startSender, UP_WITHIN_MS } from './node.testkit.js';

/** infra/janus/nack-loop.patch. Debian's own package repeats half of the packets. */

/** Janus keeps packets for 600 ms, so the receiver must find out before. */
const LOSES_FOR_MS = 200;
/** Without the patch, half of them are repeated, and one in any case. */
const LOST_AT_LEAST = 3;
const isRtcp = (packet: Buffer) => packet[0]! >> 6 === 2 && packet[1]! >= 192 && packet[1]! <= 223;
/** RFC 4585, 6.2.1. SRTCP does not encrypt the first eight bytes. */
const isRequest = (packet: Buffer) => isRtcp(packet) && packet[1] === 205 && (packet[0]! & 31) === 1;
const isRtp = (packet: Buffer) => packet[0]! >> 6 === 2 && !isRtcp(packet);

/** A line from a receiver to a port of Janus that loses packets of video, and then lets one request for them pass. */
async function startLine(janusPort: number, video: number) {
  const host = hostIPv4();
  const [front, back] = [createSocket('udp4'), createSocket('udp4')];
  let isLosing = false;
  let receiverPort = 0;
  const lost = new Set<number>();
  const repeated = new Set<number>();
  let requests = 0;
  front.bind(0, host).on('message', (packet, { port }) => {
    receiverPort = port;
    // A request can also follow a report in one packet; the answer shows that it has passed.
    const hasAsked = requests > 0 || repeated.size > 0;
    if (lost.size > 0 && isRequest(packet)) requests += 1;
    if (!hasAsked || !isRtcp(packet)) back.send(packet, janusPort, host);
  });
  back.bind(0, host).on('message', (packet) => {
    if (isRtp(packet)) {
      const number = packet.readUInt16BE(2);
      if (lost.has(number)) repeated.add(number);
      else if (isLosing && (packet[1]! & 127) === video) {
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
    lose: async () => {
      lost.clear();
      repeated.clear();
      requests = 0;
      isLosing = true;
      await delay(LOSES_FOR_MS);
      isLosing = false;
      return lost.size;
    },
    repeated,
  };
}

test('Janus repeats every packet that one request asks for', async () => {
  const node = nodeOn(await startTestJanus());
  await node.untilUp(UP_WITHIN_MS);
  await node.ensureRoom('room');
  const sender = await startSender(node, 'room', 'ada-1');
  const subscriber = await (await node.openSession()).attachSubscriber('room', 'receiver');
  const offer = await subscriber.update({ add: [{ feedId: 'ada-1', mid: '1' }], remove: [] });
  // Without a format for repeated packets, they keep their numbers.
  const rtx = [...offer!.sdp.matchAll(/^a=rtpmap:(\d+) rtx\//gm)].map(([, format]) => format);
  const sdp = offer!.sdp
    .replaceAll(new RegExp(`^a=(?:rtpmap|fmtp):(?:${rtx.join('|')}) .*\r\n`, 'gm'), '')
    .replace(/^m=video .*/m, (section) =>
      section
        .split(' ')
        .filter((format) => !rtx.includes(format))
        .join(' '),
    );
  const port = /^a=candidate:\S+ 1 udp \d+ \S+ (\d+) typ host/im.exec(sdp)![1]!;
  const video = /^a=rtpmap:(\d+) VP8\//m.exec(sdp)![1]!;
  const line = await startLine(Number(port), Number(video));

  const receiver = await createRtcPeer();
  const answer = await receiver.answer(sdp.replaceAll(` ${port} typ host`, ` ${line.port} typ host`));
  const withoutCandidates = answer.replaceAll(/^a=candidate:.*\r\n/gm, '');
  await subscriber.answer(withoutCandidates.replace(/^a=ice-pwd:.*\r\n/m, `$&a=${line.candidate}\r\n`));
  await eventually(() => receiver.framesReceived('video') > 15);
  // On a busy machine, the receiver may find out too late.
  await eventually(async () => {
    const lost = await line.lose();
    if (lost < LOST_AT_LEAST) return false;
    await eventually(() => line.repeated.size === lost, { timeoutMs: 2_000 });
    return true;
  });
  sender.peer.close();
});
