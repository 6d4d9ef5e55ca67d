import { describe, expect, test } from '@jest/globals';
import type { MediaErrorCode, MediaNode } from '@callplane/media';
import type { Logger } from '@callplane/runtime';
import { claimSession } from './handover.js';
import type { MediaRecord } from './media-writes.js';
import { mediaError } from './media.testkit.js';

const RECORD: MediaRecord = {
  connection: 2,
  nodeId: 'm1',
  generation: 1,
  janusSession: 7,
  publisher: null,
  subscriber: null,
  choices: [],
};

async function claimThatFailsWith(code: MediaErrorCode) {
  const destroyed: number[] = [];
  const logged: unknown[] = [];
  const node = {
    id: 'm1',
    claimSession: () => Promise.reject(mediaError(code)),
    destroySession: (id: number) => {
      destroyed.push(id);
      return Promise.reject(mediaError('timeout'));
    },
  } as unknown as MediaNode;
  const host = {
    logger: { warn: (...line: unknown[]) => logged.push(line) } as unknown as Logger,
  };
  const resumed = { previousConnection: 2, clientHasPeers: true };
  return { outcome: await claimSession(host, RECORD, { node, generation: 1 }, resumed), destroyed, logged };
}

describe('a claim that fails', () => {
  test('is logged with its cause', async () => {
    const { outcome, destroyed, logged } = await claimThatFailsWith('unavailable');
    expect([outcome, destroyed]).toEqual(['lost', []]);
    expect(logged).toMatchObject([['media session not claimed', { janusSession: 7, error: { code: 'unavailable' } }]]);
  });

  test('ends the session after a time-out, because the media server may have carried the claim out', async () => {
    expect(await claimThatFailsWith('timeout')).toMatchObject({ outcome: 'lost', destroyed: [7] });
  });
});
