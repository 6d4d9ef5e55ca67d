import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { expect, test } from '@jest/globals';
import { repositoryRoot } from '@callplane/testing';
import { transformSync } from '@swc/core';
import { BUGS, withPatches } from './bugs.mjs';

test.each(BUGS.map(({ name, patches }) => [name, patches] as const))(
  'the bug %s changes the present source, which still compiles',
  (_, patches) => {
    for (const { file } of patches) {
      const text = readFileSync(join(repositoryRoot, file), 'utf8');
      const patched = withPatches(file, text, patches);
      expect(patched).not.toBe(text);
      const { code } = transformSync(patched, {
        filename: file,
        swcrc: false,
        jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
        module: { type: 'commonjs', ignoreDynamic: true },
      });
      new Script(`async () => {${code}}`);
    }
  },
);
