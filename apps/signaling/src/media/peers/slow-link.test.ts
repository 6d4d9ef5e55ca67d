import { EventEmitter } from 'node:events';
import type { MediaPeerEvents } from '@callplane/media';
import type { ServerMessage } from '@callplane/protocol';
import { expect, test } from '@jest/globals';
import { reportSlowLink, SLOW_LINK_EVERY_MS } from './slow-link.js';

test('connected clients learn of lost packets at most once a second', () => {
  const handle = new EventEmitter<MediaPeerEvents>();
  const sent: ServerMessage[] = [];
  const host = {
    isConnected: true,
    send: (message: ServerMessage) => void sent.push(message),
  };
  let nowMs = 0;
  reportSlowLink(host, 'subscriber', handle, () => nowMs);
  for (const lost of [7, 8, 9]) handle.emit('slowLink', lost);
  expect(sent).toEqual([{ type: 'slowLink', target: 'subscriber', lost: 7 }]);
  nowMs += SLOW_LINK_EVERY_MS;
  host.isConnected = false;
  handle.emit('slowLink', 10);
  host.isConnected = true;
  handle.emit('slowLink', 12);
  expect(sent.slice(1)).toEqual([{ type: 'slowLink', target: 'subscriber', lost: 12 }]);
});
