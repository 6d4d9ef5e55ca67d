import { describe, expect, test } from '@jest/globals';
import type { MediaHost } from '../media-host.js';
import { HeldCandidates } from './candidates.js';

function stage() {
  const sent: (string | null)[] = [];
  const send = (message: Parameters<MediaHost['send']>[0]) => {
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

  test('are not sent twice if another description brings none', () => {
    const { sent, held, find } = stage();
    find('a');
    held.release();
    held.hold();
    held.release();
    expect(sent).toEqual(['a']);
  });
});
