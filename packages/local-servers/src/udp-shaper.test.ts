import { createSocket } from 'node:dgram';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { ShapedLine, type LineShape } from './shaped-line.js';
import { startUdpShaper } from './udp-shaper.js';

const lineOf = (shape: LineShape, seed = 1) => Object.assign(new ShapedLine(seed), { shape });
/** 1,000 bits with the headers. */
const PAYLOAD_BYTES = 97;

describe('a shaped line', () => {
  test('carries packets one after the other at its rate, and drops those that would wait too long', () => {
    const line = lineOf({ kbitPerSecond: 100, queueMs: 25, delayMs: 5 });
    expect([0, 0, 0, 0, 0].map(() => line.admit(1_000, PAYLOAD_BYTES))).toEqual([
      1015,
      1025,
      1035,
      undefined,
      undefined,
    ]);
    expect(line.admit(1_040, PAYLOAD_BYTES)).toBe(1_055);
  });

  test('loses the same packets with the same seed, about as many as its shape says', () => {
    const lostOf = (seed: number) => {
      const line = lineOf({ lossPercent: 10 }, seed);
      return Array.from({ length: 5_000 }, (_, at) => line.admit(at, PAYLOAD_BYTES) === undefined);
    };
    expect(lostOf(7)).toEqual(lostOf(7));
    expect(lostOf(7)).not.toEqual(lostOf(8));
    expect(lostOf(7).filter(Boolean).length / 5_000).toBeCloseTo(0.1, 1);
    expect(lineOf({ lossPercent: 100 }).admit(0, 1)).toBeUndefined();
  });

  test('keeps packets in order when its delay falls', () => {
    const line = lineOf({ delayMs: 200 });
    expect(line.admit(0, 1)).toBe(200);
    line.shape = {};
    expect([line.admit(10, 1), line.admit(250, 1)]).toEqual([200, 250]);
  });
});

test('the shaper carries packets of each client in both directions, and nothing while it is cut', async () => {
  const host = '127.0.0.1';
  const until = async (isTrue: () => boolean) => {
    while (!isTrue()) await setImmediate();
  };
  const server = createSocket('udp4');
  await new Promise<void>((resolve) => server.bind(0, host, resolve));
  const seen: string[] = [];
  server.on('message', (data, client) => {
    seen.push(data.toString());
    server.send(`answer to ${data.toString()}`, client.port, client.address);
  });
  const shaper = await startUdpShaper({ host, port: server.address().port });
  const clientNamed = () => {
    const socket = createSocket('udp4');
    const got: string[] = [];
    socket.on('message', (data) => got.push(data.toString()));
    return { socket, got, send: (text: string) => socket.send(text, shaper.port, host) };
  };
  const [ada, bob] = [clientNamed(), clientNamed()];
  try {
    ada.send('Ada');
    bob.send('Bob');
    await until(() => ada.got.length === 1 && bob.got.length === 1);
    expect([ada.got, bob.got]).toEqual([['answer to Ada'], ['answer to Bob']]);

    shaper.shape({ up: { lossPercent: 100 } });
    ada.send('lost');
    await until(() => shaper.lost.up === 1);
    shaper.shape({ up: { delayMs: 20 }, down: { kbitPerSecond: 1_000 } });
    ada.send('late');
    await until(() => ada.got.includes('answer to late'));
    expect(seen).toEqual(['Ada', 'Bob', 'late']);
  } finally {
    for (const { socket } of [ada, bob]) socket.close();
    server.close();
    await shaper.close();
  }
});
