import { ServerResponse, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { STREAM_HEARTBEAT_MS, STREAM_UNREAD_BYTES_MAX } from '@callplane/core';
import { expect, test } from '@jest/globals';
import { EventStream } from './event-stream.js';

const WANTED = { kinds: new Set(['rooms'] as const), roomId: null };
const position = (n: number) => ({ id: `evt_${n}`, transactionId: String(n), roomId: null, sequence: null });
const change = (n: number, text = '') => ({
  kind: 'rooms' as const,
  type: 'room.updated' as const,
  eventId: `evt_${n}${text}`,
  roomId: null,
  participantId: null,
  sequence: n,
});

/** A response whose client reads nothing: written bytes stay in the buffer. */
function unread(): { response: ServerResponse; text: () => string } {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const written: string[] = [];
  const write = response.write.bind(response);
  response.write = (chunk: string) => {
    written.push(chunk);
    return write(chunk);
  };
  return { response, text: () => written.join('') };
}

test('changes that come while the client gets the missed ones follow them, in order', () => {
  const { response, text } = unread();
  const stream = new EventStream(response, {}, WANTED);
  stream.ready(['rooms'], null);
  stream.changes([change(3)], position(3));
  stream.begin(() => stream.changes([change(2)], position(2)));
  stream.changes([change(4)], position(4));
  const ids = [...text().matchAll(/id: (\d)\.|"eventId":"evt_(\d)"/g)].map(([, id, event]) => id ?? event);
  expect(ids).toEqual(['2', '2', '3', '3', '4', '4']);
});

test('a quiet stream sends a heartbeat with the position behind events that the client does not want', () => {
  let nowMs = 0;
  const { response, text } = unread();
  const stream = new EventStream(response, {}, WANTED, () => nowMs);
  stream.ready(['rooms'], position(1));
  stream.begin(() => undefined);
  stream.changes([], position(7));
  nowMs = STREAM_HEARTBEAT_MS - 1;
  stream.heartbeat();
  expect(text()).not.toContain('heartbeat');
  nowMs = STREAM_HEARTBEAT_MS;
  stream.heartbeat();
  stream.heartbeat();
  expect(text().endsWith('id: 7.evt_7\n: heartbeat\n\n')).toBe(true);
  expect(text().split('heartbeat')).toHaveLength(2);
});

test('a client that does not read is cut, and not written to again', () => {
  const { response, text } = unread();
  const stream = new EventStream(response, {}, WANTED);
  stream.ready(['rooms'], position(1));
  stream.begin(() => undefined);
  for (let n = 0; n < 300 && !stream.isOver; n++) stream.changes([change(n, 'x'.repeat(1024))], position(n));
  expect(stream.isOver).toBe(true);
  expect(text().length).toBeLessThan(STREAM_UNREAD_BYTES_MAX + 4096);
  const before = text();
  stream.changes([change(1)], position(1));
  expect(text()).toBe(before);
});
