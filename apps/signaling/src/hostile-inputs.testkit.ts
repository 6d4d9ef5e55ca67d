import { STUN, type RawPeer, type StunAttribute } from '@callplane/testing';
import fc from 'fast-check';
import { EXTENSIONS, PAYLOADS, rtcp, rtp, SSRCS, uint32, VP8_KEY_FRAME } from './hostile-peer.testkit.js';

/** Where an input goes: a peer after a good join. */
export interface Target {
  /** Publishes audio and video. */
  sender: RawPeer;
  /** Receives the tracks of others. */
  receiver: RawPeer;
  /** The next sequence number of the sender's streams. */
  nextSequence(): number;
}

export interface HostileInput {
  name: string;
  send(target: Target): void;
}

/** Packets of a storm. */
const STORM = 40;

const bytes = (minLength: number, maxLength: number) =>
  fc.uint8Array({ minLength, maxLength }).map((array) => Buffer.from(array));
const ssrc = fc.oneof(
  fc.constantFrom<number>(...SSRCS.video, SSRCS.audio, SSRCS.rtx, SSRCS.flexfec, 0, 0xffffffff),
  fc.nat(0xffffffff),
);
const payload = fc.oneof(fc.constantFrom<number>(...Object.values(PAYLOADS)), fc.nat(127));
const inputs = <T>(name: string, arbitrary: fc.Arbitrary<T>, send: (value: T, target: Target) => void) =>
  arbitrary.map((value): HostileInput => ({ name, send: (target) => send(value, target) }));
/** Packets from one arbitrary on both connections. */
const feedback = (name: string, packets: fc.Arbitrary<(media: number) => Buffer>) =>
  inputs(name, packets, (packet, { sender, receiver }) => {
    for (const media of receiver.received.rtp.keys()) receiver.sendRtcp(packet(media));
    for (const media of [...SSRCS.video, SSRCS.audio]) sender.sendRtcp(packet(media));
  });

const rtpInputs = [
  inputs('RTP of a short length', fc.tuple(payload, ssrc, bytes(0, 3)), ([type, source, body], { sender, ...target }) =>
    sender.sendRtp(rtp({ ssrc: source, payload: type, sequence: target.nextSequence() }, body)),
  ),
  inputs('RTP padding', fc.tuple(payload, ssrc, bytes(0, 30), fc.nat(255)), ([type, source, body, pad], target) => {
    const packet = rtp(
      { ssrc: source, payload: type, sequence: target.nextSequence() },
      Buffer.concat([body, Buffer.from([pad])]),
    );
    packet[0]! |= 0x20;
    target.sender.sendRtp(packet);
  }),
  inputs(
    'RTP header extensions',
    fc.tuple(payload, ssrc, fc.constantFrom(0xbede, 0x1000, 0x100f, 0), fc.nat(40), bytes(0, 160), fc.nat(15)),
    ([type, source, profile, words, body, contributors], target) => {
      const head = Buffer.from([profile >> 8, profile & 0xff, 0, words]);
      const packet = rtp({ ssrc: source, payload: type, sequence: target.nextSequence() }, Buffer.concat([head, body]));
      packet[0]! |= 0x10 | (contributors > 12 ? contributors : 0);
      target.sender.sendRtp(packet);
    },
  ),
  inputs(
    'ids of streams and layers',
    fc.tuple(
      fc.constantFrom(...Object.values(EXTENSIONS)),
      bytes(1, 16),
      fc.constantFrom('h', 'm', 'l', 'x'),
      fc.nat(0xffffffff),
    ),
    ([id, value, rid, source], target) => {
      const elements = [
        [EXTENSIONS.mid, '1'],
        [EXTENSIONS.rid, rid],
        [id, value],
      ] as const;
      const head = { ssrc: source, payload: PAYLOADS.video, sequence: target.nextSequence() };
      target.sender.sendRtp(rtp({ ...head, elements: elements.map(([one, text]) => [one, text]) }, VP8_KEY_FRAME));
    },
  ),
  inputs('RTX', fc.tuple(bytes(0, 4), fc.nat(255)), ([body, pad], target) => {
    const packet = rtp({ ssrc: SSRCS.rtx, payload: PAYLOADS.rtx, sequence: target.nextSequence() }, body);
    if (pad < 64) packet[0]! |= 0x20;
    target.sender.sendRtp(packet);
  }),
  inputs('RTX of a layer', fc.tuple(bytes(0, 4), bytes(1, 16)), ([body, rid], target) =>
    target.sender.sendRtp(
      rtp(
        { ssrc: 7, payload: PAYLOADS.rtx, sequence: target.nextSequence(), elements: [[EXTENSIONS.repairedRid, rid]] },
        body,
      ),
    ),
  ),
  inputs(
    'FEC',
    fc.tuple(fc.constantFrom(PAYLOADS.red, PAYLOADS.ulpfec, PAYLOADS.flexfec), ssrc, bytes(0, 60)),
    ([type, source, body], target) =>
      target.sender.sendRtp(rtp({ ssrc: source, payload: type, sequence: target.nextSequence() }, body)),
  ),
  inputs(
    'payload of a codec',
    fc.tuple(fc.constantFrom<number>(...SSRCS.video), bytes(1, 60)),
    ([source, body], target) =>
      target.sender.sendRtp(rtp({ ssrc: source, payload: PAYLOADS.video, sequence: target.nextSequence() }, body)),
  ),
  inputs('dependency descriptor', bytes(1, 16), (descriptor, target) =>
    target.sender.sendRtp(
      rtp(
        {
          ssrc: SSRCS.video[0],
          payload: PAYLOADS.video,
          sequence: target.nextSequence(),
          elements: [[EXTENSIONS.dependency, descriptor]],
        },
        VP8_KEY_FRAME,
      ),
    ),
  ),
  inputs('many streams', fc.nat(0xffff0000), (first, target) => {
    for (let at = 0; at < STORM; at += 1) {
      target.sender.sendRtp(rtp({ ssrc: first + at, payload: PAYLOADS.video, sequence: at }, VP8_KEY_FRAME));
    }
  }),
];

const block = bytes(0, 80);
const rtcpInputs = [
  feedback(
    'compound RTCP',
    fc
      .array(fc.tuple(fc.integer({ min: 200, max: 207 }), fc.nat(31), block, fc.option(fc.nat(0xffff))), {
        minLength: 1,
        maxLength: 6,
      })
      .map((parts) => (media) => {
        const packets = parts.map(([type, count, body, words]) =>
          rtcp(type, count, Buffer.concat([uint32(1, media), body]), words ?? undefined),
        );
        return Buffer.concat([rtcp(201, 1, uint32(1, media, 0, 0, 0, 0, 0)), ...packets]);
      }),
  ),
  feedback(
    'RTCP of a short length',
    fc.tuple(fc.integer({ min: 192, max: 223 }), fc.nat(31), bytes(4, 12)).map(
      ([type, count, body]) =>
        () =>
          rtcp(type, count, body),
    ),
  ),
  feedback(
    'REMB',
    fc.tuple(fc.nat(255), fc.nat(0xffffff), bytes(0, 20)).map(
      ([count, rate, more]) =>
        () =>
          rtcp(
            206,
            15,
            Buffer.concat([
              uint32(1, 0),
              Buffer.from('REMB'),
              Buffer.from([count, rate >> 16, (rate >> 8) & 255, rate & 255]),
              more,
            ]),
          ),
    ),
  ),
  feedback(
    'TWCC',
    fc.tuple(fc.nat(0xffff), fc.nat(0xffff), block).map(
      ([base, count, chunks]) =>
        (media) =>
          rtcp(205, 15, Buffer.concat([uint32(1, media, (base << 16) | count, 0x100), chunks])),
    ),
  ),
  inputs('a storm of NACKs', fc.nat(500), (back, { receiver }) => {
    for (const [media, { sequence }] of receiver.received.rtp) {
      const asked = Array.from({ length: 60 }, (_, at) => (((sequence - back - 17 * at) & 0xffff) << 16) | 0xffff);
      for (let at = 0; at < STORM; at += 1) receiver.sendRtcp(rtcp(205, 1, uint32(1, media, ...asked)));
    }
  }),
  inputs('a storm of requests for key frames', fc.boolean(), (isFir, { receiver }) => {
    for (const media of receiver.received.rtp.keys()) {
      for (let at = 0; at < STORM; at += 1) {
        receiver.sendRtcp(isFir ? rtcp(206, 4, uint32(1, 0, media, at << 24)) : rtcp(206, 1, uint32(1, media)));
      }
    }
  }),
];

const stunAttribute = fc.tuple(
  fc.oneof(fc.constantFrom(...Object.values(STUN)), fc.nat(0xffff)),
  bytes(0, 700),
) satisfies fc.Arbitrary<StunAttribute>;
const transportInputs = [
  inputs('SCTP in DTLS', bytes(1, 400), (data, { sender }) => {
    const header = Buffer.concat([Buffer.from([0x13, 0x88, 0x13, 0x88]), uint32(0, 0), Buffer.from([1, 0, 0, 20])]);
    sender.sendData(Buffer.concat([header, data]));
  }),
  inputs(
    'fragments of DTLS',
    fc.tuple(
      fc.constantFrom(20, 21, 22, 23, 24, 25, 63),
      fc.nat(2),
      fc.option(fc.nat(0xffff)),
      fc.nat(30),
      fc.array(fc.nat(0xffffff), { minLength: 3, maxLength: 3 }),
      bytes(0, 300),
    ),
    ([type, epoch, length, message, numbers, body], { sender }) => {
      const [size = 0, offset = 0, part = 0] = numbers;
      const fragment = Buffer.concat([uint32((message << 24) | size, (offset & 0xffff) << 8, part), body]);
      const record = Buffer.alloc(13);
      record[0] = type;
      record.writeUInt16BE(0xfefd, 1);
      record.writeUInt16BE(epoch, 3);
      record.writeUIntBE(numbers[0]! + 100, 5, 6);
      record.writeUInt16BE(length ?? fragment.length, 11);
      sender.sendRaw(Buffer.concat([record, fragment]));
    },
  ),
  inputs(
    'a flood of STUN',
    fc.tuple(fc.array(stunAttribute, { maxLength: 6 }), fc.boolean()),
    ([attributes, isSigned], { sender }) => {
      for (let at = 0; at < STORM; at += 1)
        sender.sendRaw(sender.stunRequest(attributes, isSigned ? undefined : 'another'));
    },
  ),
  inputs(
    'a broken STUN message',
    fc.tuple(fc.nat(0x3fff), fc.nat(0xffff), fc.nat(60)),
    ([type, length, cut], { sender }) => {
      const message = sender.stunRequest([[STUN.priority, uint32(1)]]);
      message.writeUInt16BE(type, 0);
      message.writeUInt16BE(length, 2);
      sender.sendRaw(message.subarray(0, message.length - cut));
    },
  ),
  inputs('SRTP of another session', ssrc, (source, { sender, receiver, ...target }) => {
    const packet = rtp({ ssrc: source, payload: PAYLOADS.video, sequence: target.nextSequence() }, VP8_KEY_FRAME);
    for (let at = 0; at < STORM; at += 1) sender.sendRaw(receiver.srtp.protectRtp(packet));
    sender.sendRaw(receiver.srtp.protectRtcp(rtcp(206, 1, uint32(1, source))));
  }),
  inputs('a short or random datagram', fc.tuple(fc.nat(255), bytes(0, 60)), ([first, body], { sender }) =>
    sender.sendRaw(Buffer.concat([Buffer.from([first]), body])),
  ),
];

/** Any malformed input. */
export const hostileInput: fc.Arbitrary<HostileInput> = fc.oneof(...rtpInputs, ...rtcpInputs, ...transportInputs);
