import { once } from 'node:events';
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { expect, test } from '@jest/globals';
import { eventually, stopAtEnd } from '@callplane/testing';
import { Cable } from './cable.js';

/** A server that sends everything back, behind a cable. */
async function echo(): Promise<Cable> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).pipe(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const cable = await Cable.open((server.address() as AddressInfo).port);
  stopAtEnd(async () => {
    cable.close();
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return cable;
}

function client(port: number) {
  const socket = connect({ port, host: '127.0.0.1' });
  stopAtEnd(() => Promise.resolve(socket.destroy()));
  const state = { socket, text: '', isClosed: false };
  socket.on('data', (chunk) => (state.text += chunk.toString())).on('close', () => (state.isClosed = true));
  return state;
}

test('a cut cable carries nothing and closes nothing, and sent bytes arrive once it is healed', async () => {
  const cable = await echo();
  const before = client(cable.port);
  before.socket.write('a');
  await eventually(() => before.text === 'a');
  cable.cut();
  before.socket.write('b');
  const during = client(cable.port);
  await new Promise((resolve) => during.socket.once('connect', resolve));
  during.socket.write('c');
  // An uncut cable carries its text there and back meanwhile.
  const other = client((await echo()).port);
  other.socket.write('d');
  await eventually(() => other.text === 'd');
  expect([before.text, during.text, before.isClosed, during.isClosed]).toEqual(['a', '', false, false]);
  cable.heal();
  await eventually(() => before.text === 'ab' && during.text === 'c');
});

test('the end of one side of a connection ends the other', async () => {
  const cable = await echo();
  const one = client(cable.port);
  one.socket.write('a');
  await eventually(() => one.text === 'a');
  one.socket.end();
  await eventually(() => one.isClosed);
});
