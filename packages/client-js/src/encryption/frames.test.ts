import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { splitFrame } from './clear-head.js';
import { FrameKeys, type Refusal } from './frame-keys.js';
import { encryptFrame, FrameReceiver, type CarriedTrack, type EncodedFrame } from './frames.js';
import type { Bytes } from './sframe.js';

const CAMERA: CarriedTrack = { kind: 'video', label: 'camera', sender: 'ada' };
const START = [0, 0, 0, 1];
const H264_KEY = [...START, 0x67, 1, 2, 3, 0, 0, 1, 0x68, 4, 5, ...START, 0x65, 6, 7, 8];

function frameOf(bytes: ArrayLike<number>, mimeType = 'video/VP8'): EncodedFrame {
  return { data: Uint8Array.from(bytes).buffer, getMetadata: () => ({ mimeType }) };
}
const bytesOf = ({ data }: EncodedFrame): Bytes => new Uint8Array(data);

async function setUp(sent: CarriedTrack = CAMERA) {
  const [keys, others] = [new FrameKeys('AES-GCM-128'), new FrameKeys('AES-GCM-128')];
  keys.sender = 'ada';
  await Promise.all([keys, others].map((one) => one.setKey(0, new Uint8Array(32).fill(1), true)));
  const states: (Refusal | undefined)[] = [];
  const missing: number[] = [];
  const receiver = new FrameReceiver(others, {
    state: (reason) => states.push(reason),
    unknownKey: (id) => missing.push(id),
  });
  receiver.carried = CAMERA;
  const encrypted = async (bytes: ArrayLike<number> = [1, 2, 3, 4], mimeType?: string) => {
    const frame = frameOf(bytes, mimeType);
    await encryptFrame(keys, sent, frame);
    return frame;
  };
  return { keys, others, receiver, states, missing, encrypted };
}

describe('frames', () => {
  test.each([
    ['a key frame of VP8', 'video/VP8', Array.from({ length: 40 }, (_, at) => at * 2), 10],
    ['another frame of VP8', 'video/VP8', Array.from({ length: 40 }, (_, at) => at * 2 + 1), 1],
    ['a frame of Opus', 'audio/opus', [120, 1, 2, 3], 1],
    ['an IDR picture of H.264', 'video/H264', [...H264_KEY, ...Array.from({ length: 40 }, () => 0)], H264_KEY.length],
    ['a frame of a codec that should not be there', 'video/VP9', [1, 2, 3, 4], 0],
  ])('%s keeps its clear head, and arrives as it was', async (_, mimeType, bytes, clear) => {
    const { receiver, encrypted } = await setUp();
    const frame = await encrypted(bytes, mimeType);
    expect([...bytesOf(frame).subarray(0, clear)]).toEqual(bytes.slice(0, clear));
    expect(bytesOf(frame).length).toBeGreaterThan(bytes.length + 24);
    expect(await receiver.receive(frame)).toBe(true);
    expect([...bytesOf(frame)]).toEqual(bytes);
  });

  test('with a changed clear head are dropped', async () => {
    const { receiver, encrypted } = await setUp();
    const key = await encrypted(Array.from({ length: 40 }, () => 2));
    bytesOf(key)[6]! ^= 1;
    expect(await receiver.receive(key)).toBe(false);
  });

  test('of H.264 have no start codes but their own, and bear other ones of a packetizer', async () => {
    const { encrypted, receiver } = await setUp();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (slice) => {
        const plain = [...H264_KEY, ...slice];
        const frame = await encrypted(plain, 'video/H264');
        const written = Buffer.from(bytesOf(frame));
        const starts = written.filter((_, at) => written[at] === 0 && written[at + 1] === 0 && written[at + 2]! < 3);
        // Two start codes of four bytes have `00 00 00` and `00 00 01`, one of three has `00 00 01`.
        expect(starts).toHaveLength(5);
        expect(written.at(-1)).not.toBe(0);
        const short = written.toString('latin1').replaceAll('\0\0\0\x01', '\0\0\x01');
        frame.data = Uint8Array.from(Buffer.from(short, 'latin1')).buffer;
        expect(await receiver.receive(frame)).toBe(true);
        expect(splitFrame('h264', bytesOf(frame)).rest).toEqual(Uint8Array.from(slice));
      }),
      { numRuns: 60 },
    );
  });

  test('of another track or session are dropped', async () => {
    const { encrypted, receiver } = await setUp({ ...CAMERA, label: 'screen' });
    expect(await receiver.receive(await encrypted())).toBe(false);
    receiver.carried = { ...CAMERA, label: 'screen', sender: 'bob' };
    expect(await receiver.receive(await encrypted())).toBe(false);
    receiver.carried = undefined;
    expect(await receiver.receive(await encrypted())).toBe(false);
    receiver.carried = { ...CAMERA, label: 'screen' };
    expect(await receiver.receive(await encrypted())).toBe(true);
  });

  test('for another decoder are dropped', async () => {
    const { encrypted, receiver } = await setUp();
    const { data } = await encrypted([1, 2, 3, 4], 'video/VP9');
    expect(await receiver.receive({ data, getMetadata: () => ({ mimeType: 'video/AV1' }) })).toBe(false);
    expect(await receiver.receive({ data, getMetadata: () => ({ mimeType: 'video/VP9' }) })).toBe(true);
  });

  test('wait for the message that names their track', async () => {
    const { encrypted, receiver, states } = await setUp({ ...CAMERA, label: 'screen' });
    const early = receiver.receive(await encrypted());
    await new Promise((resolve) => setImmediate(resolve));
    receiver.carried = { ...CAMERA, label: 'screen' };
    expect(await early).toBe(true);
    expect(states).toEqual([]);
  });

  test('that are not encrypted are never passed', async () => {
    const { receiver } = await setUp();
    for (const bytes of [[], [1], Array.from({ length: 200 }, () => 1), H264_KEY]) {
      expect(await receiver.receive(frameOf(bytes))).toBe(false);
    }
  });

  test('report a failure after ten in a row and a success after it, and name missing keys', async () => {
    const { keys, others, encrypted, receiver, states, missing } = await setUp();
    await keys.setKey(1, new Uint8Array(32).fill(7), true);
    await others.setKey(1, new Uint8Array(32).fill(8), false);
    for (let count = 0; count < 12; count += 1) expect(await receiver.receive(await encrypted())).toBe(false);
    expect(states).toEqual(['wrong_key']);
    await others.setKey(1, new Uint8Array(32).fill(7), false);
    expect(await receiver.receive(await encrypted())).toBe(true);
    expect(states).toEqual(['wrong_key', undefined]);
    await keys.setKey(12, new Uint8Array(32).fill(3), true);
    expect(await receiver.receive(await encrypted())).toBe(false);
    expect(missing).toEqual([12]);
  });
});
