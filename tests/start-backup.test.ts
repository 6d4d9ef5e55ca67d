import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { createClient } from '@callplane/server';
import { localStarts } from './start.testkit.js';

/** Tests the backup of the local start in docs/operations/backup.md. */

const [original, copy] = [localStarts(), localStarts()];

test('a copy of the folder of a stopped start runs with its rooms and keys', async () => {
  const first = original.start();
  const { baseUrl, secretKey } = await original.ready(first);
  const { id } = await createClient({ baseUrl, apiKey: secretKey }).createRoom({ name: 'Kept' });
  first.child.kill('SIGTERM');
  expect(await first.ended).toBe(0);

  execFileSync('cp', ['--archive', original.dataDir(), copy.dataDir()]);
  const dev = await copy.ready(copy.start());
  const api = createClient({ baseUrl: dev.baseUrl, apiKey: secretKey });
  expect(await api.readRoom({ roomId: id })).toMatchObject({ name: 'Kept' });
});
