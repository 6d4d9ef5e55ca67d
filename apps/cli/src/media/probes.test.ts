import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually, stopAtEnd } from '@callplane/testing';
import { answerProbes, reaches } from './probes.js';

const KEY = 'secret of the media servers';
let port: number;
beforeAll(async () => {
  const sockets = await answerProbes(0, KEY);
  stopAtEnd(async () => sockets.forEach((socket) => socket.close()));
  port = sockets[0]!.address().port;
});

test('an agent answers the probe of an agent that has its key, and no other one', async () => {
  expect(await reaches('127.0.0.1', port, KEY)).toBe(true);
  expect(await reaches('127.0.0.1', port, 'another secret')).toBe(false);
  expect(await reaches('no-such-host.invalid', port, KEY)).toBe(false);
});

test('a second agent on the machine does not end the first one, and a closed port is not reached', async () => {
  const [first, ...others] = await answerProbes(port, KEY);
  expect(await reaches('127.0.0.1', port, KEY)).toBe(true);
  for (const socket of [first!, ...others]) socket.close();
  const closed = createSocket('udp4').bind(0);
  await once(closed, 'listening');
  const free = closed.address().port;
  closed.close();
  expect(await reaches('127.0.0.1', free, KEY)).toBe(false);
});

test('an answer is as long as its question, so nobody can use an agent to send more than they send', async () => {
  const socket = createSocket('udp4');
  stopAtEnd(async () => socket.close());
  const received: Buffer[] = [];
  socket.on('message', (each) => received.push(each));
  const sent = new Promise<Buffer>((resolve) => {
    const listener = createSocket('udp4').bind(0, '127.0.0.1', () => {
      listener.once('message', (question) => {
        listener.close();
        resolve(question);
      });
      void reaches('127.0.0.1', listener.address().port, KEY);
    });
  });
  const question = await sent;
  socket.send(question.subarray(1), port, '127.0.0.1');
  socket.send(Buffer.concat([question, Buffer.from('more')]), port, '127.0.0.1');
  socket.send(question, port, '127.0.0.1');
  await eventually(() => received.length > 0);
  expect(received.map((each) => each.length)).toEqual([question.length]);
});
