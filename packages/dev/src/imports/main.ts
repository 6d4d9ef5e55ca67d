/**
 * `node scripts/dev.mjs imports`: fails if files import each other in a circle. The order in which such files run
 * depends on which one is loaded first, and none can be understood without the others. oxlint checks the directions
 * between packages.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Failure, root } from '../bootstrap.js';
import { trackedFiles } from '../tracked-files.js';
import { findCircles, importsOf } from './circles.js';

export function main(): void {
  const files = trackedFiles(['apps/*.ts', 'packages/*.ts', 'tests/*.ts']);
  const graph = new Map(
    files.map((file) => {
      const imports = importsOf(readFileSync(join(root, file), 'utf8'));
      return [file, imports.map((specifier) => join(dirname(file), specifier.replace(/\.js$/, '.ts')))];
    }),
  );
  const circles = findCircles(graph);
  for (const circle of circles) console.log(`These files import each other:\n  ${circle.join('\n  ')}`);
  if (circles.length > 0) throw new Failure(`${circles.length} circles of imports`);
  console.log(`${files.length} files, no circle of imports.`);
}
