import { describe, expect, test } from '@jest/globals';
import type { MediaPeerEvents } from '@callplane/media';
import type { ServerMessage } from '@callplane/protocol';
import { EventEmitter } from 'node:events';
import { HeldCandidates, reportSlowLink, SLOW_LINK_EVERY_MS } from './peer-notices.js';

function stage() {
  const sent: (string | null)[] = [];
  const send = (message: ServerMessage) => {
    if (message.type === 'candidate') sent.push(message.candidate?.candidate ?? null);
  };
  const held = new HeldCandidates({ send }, 'subscriber');
  const find = (...names: (string | null)[]) =>
    names.forEach((candidate) => held.add(candidate === null ? null : { candidate }));
  return { sent, held, find };
}

describe('candidates of the media server', () => {
  test('follow the description, and all of them are repeated over another connection', () => {
    const { sent, held, find } = stage();
    find('a', 'b');
    expect(sent).toEqual([]);
    held.release();
    find(null);
    expect(sent).toEqual(['a', 'b', null]);
    held.repeat();
    expect(sent).toEqual(['a', 'b', null, 'a', 'b', null]);
  });

  test('that an ICE restart finds again follow the next description, and are repeated once', () => {
    const { sent, held, find } = stage();
    find('a', 'b', null);
    held.release();
    held.hold();
    find('a', 'b', 'c', null);
    held.repeat();
    expect(sent).toEqual(['a', 'b', null]);
    held.release();
    expect(sent.slice(3)).toEqual(['a', 'b', 'c', null]);
    held.repeat();
    expect(sent.slice(7)).toEqual(['a', 'b', 'c', null]);
  });
});

test('clients learn of lost packets at most once a second', () => {
  const handle = new EventEmitter<MediaPeerEvents>();
  const sent: ServerMessage[] = [];
  const session = { isConnected: true, send: (message: ServerMessage) => void sent.push(message) };
  let nowMs = 0;
  reportSlowLink(session, 'subscriber', handle, () => nowMs);
  for (const lost of [7, 8, 9]) handle.emit('slowLink', lost);
  expect(sent).toEqual([{ type: 'slowLink', target: 'subscriber', lost: 7 }]);
  nowMs += SLOW_LINK_EVERY_MS;
  session.isConnected = false;
  handle.emit('slowLink', 10);
  session.isConnected = true;
  handle.emit('slowLink', 11);
  expect(sent.slice(1)).toEqual([{ type: 'slowLink', target: 'subscriber', lost: 11 }]);
});
