/**
 * Writes a module for each library below, which jest.config.js maps its name to. Jest resolves, compiles and runs every
 * module again for each test file; these take the library that environment.mjs imported once into the worker.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { LIBRARIES } from './libraries.mjs';

const packages = join(import.meta.dirname, '../..');
const folder = join(import.meta.dirname, '../dist/libraries');
mkdirSync(folder, { recursive: true });

for (const [name, importer] of Object.entries(LIBRARIES)) {
  const url = import.meta.resolve(name, pathToFileURL(join(packages, importer, 'package.json')).href);
  // From environment.mjs, which is in this folder. Turbo's cache takes the module to other checkouts.
  const path = relative(import.meta.dirname, fileURLToPath(url));
  const exports = Object.keys(await import(url));
  // A name such as `static` or `Symbol` may be exported, and not declared.
  const names = exports.filter((key) => key !== 'module.exports').map((key, at) => [key, `_${at}`]);
  writeFileSync(
    join(folder, `${name.replaceAll('/', '+')}.mjs`),
    [
      `const library = await globalThis['callplane.library']('${path}');`,
      `const { ${names.map(([key, own]) => `${key}: ${own}`).join(', ')} } = library;`,
      `export { ${names.map(([key, own]) => `${own} as ${key}`).join(', ')} };`,
      '',
    ].join('\n'),
  );
}
