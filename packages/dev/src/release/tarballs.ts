import { join } from 'node:path';
import { root, run, toolsEnvironment } from '../bootstrap.js';
import { refreshBuild } from './fresh-build.js';

/** The packages that others install. */
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
