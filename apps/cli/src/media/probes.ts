import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

const NONCE_BYTES = 16;
const TRIES = 3;
const ANSWER_WITHIN_MS = 400;
const RESOLVED_WITHIN_MS = 1000;

type Kind = 'question' | 'answer';

/** A random number and its authentication. An answer repeats the number, and is not longer than its question. */
function packet(kind: Kind, key: string, nonce: Buffer): Buffer {
  const tag = createHmac('sha256', key).update(`probe ${kind}\n`).update(nonce).digest();
  return Buffer.concat([nonce, tag]);
}

function isGenuine(kind: Kind, key: string, received: Buffer): boolean {
  const expected = packet(kind, key, received.subarray(0, NONCE_BYTES));
  return received.length === expected.length && timingSafeEqual(received, expected);
}

/** Answers the probes of the agents beside other media servers, which have the same key. */
export async function answerProbes(port: number, key: string): Promise<Socket[]> {
  const sockets = (['udp4', 'udp6'] as const).map((type) => createSocket({ type, ipv6Only: type === 'udp6' }));
  await Promise.all(
    sockets.map(async (socket) => {
      socket.on('message', (received, { address, port: from }) => {
        if (!isGenuine('question', key, received)) return;
        socket.send(packet('answer', key, received.subarray(0, NONCE_BYTES)), from, address, () => undefined);
      });
      // Without IPv6, or if another program has the port, the other servers find that they do not reach this one.
      socket.on('error', () => undefined);
      await Promise.race([once(socket.bind(port), 'listening'), once(socket, 'error')]).catch(() => undefined);
    }),
  );
  return sockets;
}

/** Whether the agent beside another media server answers over UDP, as a forward has to arrive there. */
export async function reaches(host: string, port: number, key: string): Promise<boolean> {
  // A slow resolver must not delay the heartbeat that waits for this.
  const lookedUp = lookup(host.replace(/^\[|\]$/g, '')).catch(() => null);
  const found = await Promise.race([lookedUp, delay(RESOLVED_WITHIN_MS, null)]);
  if (found === null) return false;
  const socket = createSocket(found.family === 6 ? 'udp6' : 'udp4');
  // A refusal: nothing listens there.
  socket.on('error', () => undefined);
  try {
    const nonce = randomBytes(NONCE_BYTES);
    const answered = new Promise<boolean>((resolve) => {
      socket.on('message', (received) => {
        if (isGenuine('answer', key, received) && received.subarray(0, NONCE_BYTES).equals(nonce)) resolve(true);
      });
    });
    for (let tries = 0; tries < TRIES; tries += 1) {
      socket.send(packet('question', key, nonce), port, found.address, () => undefined);
      if (await Promise.race([answered, delay(ANSWER_WITHIN_MS, false)])) return true;
    }
    return false;
  } finally {
    socket.close();
  }
}
