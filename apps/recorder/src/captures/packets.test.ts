import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { capture, packetBytes } from '@callplane/testing';
import { readPackets, type Packet } from './packets.js';

const folder = mkdtempSync(join(tmpdir(), 'callplane-packets-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function read(bytes: Buffer): Promise<{ codec: string; packets: Packet[] }> {
  const path = join(folder, 'capture.mjr');
  writeFileSync(path, bytes);
  const packets: Packet[] = [];
  let codec = '';
  for await (const some of readPackets(path, ({ c }) => (codec = c))) packets.push(...some);
  return { codec, packets };
}

const packet = (n: number, payload = 'x') => ({
  arrivalMs: n * 20,
  sequence: 65_534 + n,
  timestamp: 2 ** 32 - 960 + n * 960,
  payload: Buffer.from(payload),
});

describe('a capture', () => {
  test('continues sequence numbers and times beyond their ranges, also for a packet that comes late', async () => {
    const { codec, packets } = await read(
      capture(
        'opus',
        [0, 1, 3, 2, 4].map((n) => packet(n)),
      ),
    );
    expect(codec).toBe('opus');
    expect(packets.map(({ sequence }) => sequence - 65_534)).toEqual([0, 1, 3, 2, 4]);
    expect(packets.map(({ timestamp }) => (timestamp - (2 ** 32 - 960)) / 960)).toEqual([0, 1, 3, 2, 4]);
  });

  test.each([1, 5, 9, 15])('without its last %i bytes has all packets but the last', async (cut) => {
    const bytes = capture('opus', [packet(0), packet(1)]);
    const { packets } = await read(bytes.subarray(0, bytes.length - cut));
    expect(packets).toHaveLength(1);
  });

  test('with a damaged part has the packets behind it', async () => {
    const whole = [packetBytes(packet(0)), Buffer.from('garbage MEE'), packetBytes(packet(1))];
    const { packets } = await read(Buffer.concat([capture('opus', []), ...whole]));
    expect(packets).toHaveLength(2);
  });

  test('larger than a chunk is read whole', async () => {
    const { packets } = await read(
      capture(
        'vp8',
        Array.from({ length: 3000 }, (_, n) => packet(n, 'y'.repeat(1000))),
      ),
    );
    expect(packets).toHaveLength(3000);
    expect(packets.every(({ payload }) => payload.equals(Buffer.from('y'.repeat(1000))))).toBe(true);
  });

  test('that has only its beginning has no packets, and another file is refused', async () => {
    expect((await read(Buffer.from('MJR00002'))).packets).toEqual([]);
    expect((await read(Buffer.alloc(0))).packets).toEqual([]);
    await expect(read(Buffer.from('RIFF....'))).rejects.toThrow('no capture of Janus');
  });
});
