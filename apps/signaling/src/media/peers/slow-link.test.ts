import { EventEmitter } from 'node:events';
import type { MediaPeerEvents } from '@callplane/media';
import type { AnyServerMessage, ProtocolVersion } from '@callplane/protocol';
import { expect, test } from '@jest/globals';
import { reportSlowLink, SLOW_LINK_EVERY_MS } from './slow-link.js';

test('clients with version 2 learn of lost packets at most once a second, and others do not', () => {
  const handle = new EventEmitter<MediaPeerEvents>();
  const sent: AnyServerMessage[] = [];
  const host = {
    isConnected: true,
    protocol: 2 as ProtocolVersion,
    send: (message: AnyServerMessage) => void sent.push(message),
  };
  let nowMs = 0;
  reportSlowLink(host, 'subscriber', handle, () => nowMs);
  for (const lost of [7, 8, 9]) handle.emit('slowLink', lost);
  expect(sent).toEqual([{ type: 'slowLink', target: 'subscriber', lost: 7 }]);
  nowMs += SLOW_LINK_EVERY_MS;
  host.isConnected = false;
  handle.emit('slowLink', 10);
  Object.assign(host, { isConnected: true, protocol: 1 });
  handle.emit('slowLink', 11);
  host.protocol = 2;
  handle.emit('slowLink', 12);
  expect(sent.slice(1)).toEqual([{ type: 'slowLink', target: 'subscriber', lost: 12 }]);
});
