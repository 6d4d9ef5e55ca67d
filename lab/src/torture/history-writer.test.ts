import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { HistoryWriter, withoutSecrets } from './history-writer.js';
import { HISTORY_FILES } from './history.js';

test('lines are counted in each file, with the time of their subject', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'callplane-test-history-'));
  try {
    const history = new HistoryWriter(join(folder, 'run'));
    history.mark('load began');
    history.mark('load ended', { rooms: 3 });
    await history.close();
    const lines = readFileSync(join(folder, 'run', HISTORY_FILES.marks), 'utf8')
      .trim()
      .split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { n: 0, wall: expect.stringMatching(/Z$/), atMs: expect.any(Number), mark: 'load began', detail: {} },
      { n: 1, wall: expect.stringMatching(/Z$/), atMs: expect.any(Number), mark: 'load ended', detail: { rooms: 3 } },
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('secrets do not reach a history, wherever they are', () => {
  const answer = { id: 'whep_1', signingSecret: 'whsec_x', list: [{ token: 'ey…', tokenId: 'tok_1' }], key: null };
  expect(withoutSecrets(answer)).toEqual({
    id: 'whep_1',
    signingSecret: '[secret]',
    list: [{ token: '[secret]', tokenId: 'tok_1' }],
    key: null,
  });
});
