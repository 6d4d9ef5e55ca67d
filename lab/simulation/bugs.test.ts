import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { repositoryRoot } from '@callplane/testing';

interface Bug {
  readonly name: string;
  readonly patches: readonly { file: string; find: string; replace: string }[];
}

test('each seeded bug replaces a text that its file has once', async () => {
  const { BUGS }: { BUGS: readonly Bug[] } = await import(join(repositoryRoot, 'lab/simulation/bugs.mjs'));
  const misplaced = BUGS.flatMap(({ name, patches }) =>
    patches
      .filter(({ file, find }) => readFileSync(join(repositoryRoot, file), 'utf8').split(find).length !== 2)
      .map(({ file, find }) => ({ name, file, find })),
  );
  expect(misplaced).toEqual([]);
  expect(BUGS.length).toBeGreaterThan(0);
});
