import { execFile } from 'node:child_process';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BUGS, withPatches } from '../../simulation/bugs.mjs';
import { Failure, root } from '../bootstrap.js';

/** Files that programs and settings of the build find by their place. */
const LINKED = ['node_modules', 'package.json', 'docs', 'infra', 'prisma', 'tsconfig.base.json', 'tsconfig.build.json'];
const COPIED = ['apps', 'packages'];

/**
 * Copies the built repository and compiles the files that seeded bugs change. Packages find each other by relative
 * links, and so the copy uses its own.
 * @param folder does not exist yet.
 * @returns the folder.
 */
export async function buildWithBugs(folder: string, names: readonly string[]): Promise<string> {
  const bugs = names.map((name) => {
    const bug = BUGS.find((each) => each.name === name);
    if (bug === undefined)
      throw new Failure(`There is no seeded bug "${name}". lab/simulation/bugs.mjs names all of them.`);
    return bug;
  });
  const patches = bugs.flatMap((bug) => bug.patches);
  for (const name of COPIED)
    await cp(join(root, name), join(folder, name), { recursive: true, verbatimSymlinks: true });
  for (const name of LINKED) await symlink(join(root, name), join(folder, name));
  for (const file of new Set(patches.map((patch) => patch.file)))
    await writeFile(join(folder, file), withPatches(file, await readFile(join(root, file), 'utf8'), patches));
  const changed = new Set(patches.map(({ file }) => file.split('/').slice(0, 2).join('/')));
  const compiler = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');
  for (const part of changed) {
    const args = [compiler, '-p', join(folder, part, 'tsconfig.build.json')];
    await promisify(execFile)(process.execPath, args).catch((error: unknown) => {
      throw new Failure(
        `${part} cannot be built with ${names.join(', ')}: ${String((error as { stdout?: string }).stdout)}`,
      );
    });
  }
  return folder;
}
