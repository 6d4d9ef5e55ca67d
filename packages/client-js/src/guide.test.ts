import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@callplane/testing';

test.each(['plain.ts', 'react.tsx', 'metadata.ts'])('the guide shows %s as CI compiles and runs it', (file) => {
  const guide = readFileSync(join(repositoryRoot, 'docs', 'client-sdk.md'), 'utf8');
  expect(guide).toContain(readFileSync(join(repositoryRoot, 'packages', 'client-js', 'examples', file), 'utf8'));
});
