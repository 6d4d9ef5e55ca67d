/**
 * `node scripts/dev.mjs prose [<file>…]`: looks for the worst idioms in comments, messages and Markdown, in all files of
 * the repository or in the named ones. Fails if it finds one; docs/style.md explains what to write instead.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, root } from '../bootstrap.js';
import { trackedFiles } from '../tracked-files.js';
import { findIdioms, paragraphsOf } from './rules.js';

/**
 * Generated files are fixed where they come from. Released migrations and decisions are never edited, and docs/style.md
 * quotes the idioms.
 */
const LEFT_OUT =
  /^(prisma\/migrations\/|docs\/decisions\/|docs\/(style|configuration)\.md$|pnpm-lock\.yaml$)|\.generated\.ts$/;

export function main(named: string[]): void {
  const files = trackedFiles(named).filter((file) => !LEFT_OUT.test(file));
  let count = 0;
  for (const file of files) {
    for (const { line, idiom, excerpt } of findIdioms(paragraphsOf(file, readFileSync(join(root, file), 'utf8')))) {
      console.log(`${file}:${line}: "${idiom}": ${excerpt}`);
      count += 1;
    }
  }
  if (count > 0) throw new Failure(`${count} idioms found. docs/style.md explains what to write instead.`);
  console.log(`${files.length} files, no idiom found.`);
}
