import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { repositoryRoot } from '@callplane/testing';
import { BUGS, withPatches } from './bugs.mjs';

test.each(BUGS.map(({ name, patches }) => [name, patches] as const))(
  'the seeded bug %s replaces texts that their files have once',
  (_, patches) => {
    for (const { file } of patches) {
      const text = readFileSync(join(repositoryRoot, file), 'utf8');
      expect(withPatches(file, text, patches)).not.toBe(text);
    }
  },
);
