import { join } from 'node:path';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { root, run, toolsEnvironment } from '../bootstrap.js';

export const PUBLISHED = [
  { name: '@callplane/client-js', folder: 'packages/client-js' },
  { name: '@callplane/server', folder: 'packages/server-js' },
  { name: '@callplane/webhook-verifier', folder: 'packages/webhook-verifier' },
];

/**
 * Compiles the packages and packs them as pnpm would publish them: with `publishConfig` applied, versions in place of `workspace:`
 * and the licence of the repository.
 */
export async function packTarballs(target: string): Promise<void> {
  const pnpm = join(root, '.tools', 'node_modules', '.bin', 'pnpm');
  for (const { name, folder } of PUBLISHED) {
    await refreshBuild(folder);
    await run(pnpm, ['pack', '--pack-destination', target], {
      cwd: join(root, folder),
      env: toolsEnvironment(),
      failure: `${name} cannot be packed`,
    });
  }
}

const COMPILER = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');

/**
 * Makes the `dist` of a package that others install equal to a build into an empty folder. A compiler deletes nothing:
 * without this, files of removed sources and edited files would be packed. Other processes may use `dist` meanwhile, so
 * only files that differ change.
 * @param folder such as `packages/server-js`
 */
async function refreshBuild(folder: string): Promise<void> {
  // Beside `dist`, because source maps contain the relative path to `src`.
  const fresh = join(root, folder, 'dist.fresh');
  rmSync(fresh, { recursive: true, force: true });
  try {
    const failure = `${folder} cannot be compiled`;
    for (const [project, out] of [
      ['tsconfig.build.json', fresh],
      ['tsconfig.cjs.json', join(fresh, 'cjs')],
    ] as const) {
      await run(process.execPath, [COMPILER, '-p', join(root, folder, project), '--outDir', out], { failure });
    }
    // As the build script of the package writes it.
    writeFileSync(join(fresh, 'cjs', 'package.json'), '{ "type": "commonjs" }\n');
    mirror(fresh, join(root, folder, 'dist'));
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

function mirror(source: string, target: string): void {
  const wanted = new Set(filesIn(source));
  for (const file of filesIn(target)) if (!wanted.has(file)) rmSync(join(target, file));
  for (const file of wanted) {
    const [from, to] = [join(source, file), join(target, file)];
    if (!existsSync(to) || !readFileSync(from).equals(readFileSync(to))) cpSync(from, to);
  }
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return entries.filter((entry) => !statSync(join(folder, entry)).isDirectory());
}
