/**
 * `npm run release [-- --dry-run] [-- --out <folder>]`: makes all parts of a release in one folder:
 * tarballs of the packages that others install, the build context of the images, the bill of materials, the notes and
 * checksums. It publishes nothing; docs/release.md has the next steps. `--dry-run` accepts uncommitted changes and a
 * version without a section in CHANGELOG.md.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync, createReadStream, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { Failure, progress, readJson, root, run, toolsEnvironment } from '../bootstrap.js';
import { PUBLISHED, packTarballs } from './tarballs.js';

export async function main(args: string[]): Promise<void> {
  const { dryRun, out } = optionsIn(args);
  const version = commonVersion();
  const folder = resolve(root, out ?? join('release', version));
  const step = progress((line) => console.log(line));
  const commit = (await run('git', ['rev-parse', 'HEAD'])).trim();
  await checkTree(dryRun);
  const notes = changelogSection(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version, { dryRun });

  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await step('Packing', () => packTarballs(folder));
  await step('Writing the build context of the images', () => writeImageContext(folder, version));
  writeFileSync(join(folder, `callplane-${version}.cdx.json`), await billOfMaterials(version));
  writeFileSync(join(folder, 'NOTES.md'), `# Callplane ${version}\n\nCommit ${commit}.\n\n${notes}\n`);
  const files = await writeChecksums(folder);

  console.log(`${dryRun ? 'A rehearsal of release' : 'Release'} ${version} is in ${folder}:`);
  for (const { name, bytes } of files) console.log(`  ${String(bytes).padStart(10)}  ${name}`);
  if (!dryRun) console.log('Nothing has been published. docs/release.md has the next steps.');
}

function optionsIn(args: string[]): { dryRun: boolean; out: string | undefined } {
  try {
    const { values } = parseArgs({ args, options: { 'dry-run': { type: 'boolean' }, out: { type: 'string' } } });
    return { dryRun: values['dry-run'] === true, out: values.out };
  } catch (error) {
    throw new Failure(`${(error as Error).message} Usage: npm run release -- [--dry-run] [--out <folder>]`);
  }
}

/** The version of the release. All packages that others install have it. */
function commonVersion(): string {
  const files = ['package.json', ...PUBLISHED.map(({ folder }) => join(folder, 'package.json'))];
  const versions = files.map((file) => (readJson(join(root, file)) as { version: string }).version);
  const [version = ''] = versions;
  if (versions.every((one) => one === version)) return version;
  const list = files.map((file, index) => `${file} ${versions[index] ?? ''}`).join(', ');
  throw new Failure(`The versions of a release must be equal: ${list}`);
}

/** The image context contains committed files only, so a change that is not committed would be missing from it. */
async function checkTree(dryRun: boolean): Promise<void> {
  if (dryRun) return;
  const changed = (await run('git', ['status', '--porcelain'])).trim();
  if (changed !== '') throw new Failure(`Commit or remove these changes before a release:\n${changed}`);
}

/**
 * The section of a version in the changelog, without its heading.
 * @param dryRun accepts a section without a date
 */
function changelogSection(changelog: string, version: string, { dryRun }: { dryRun: boolean }): string {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find((section) => section.startsWith(`[${version}] - `)) ?? '';
  const heading = found.slice(0, found.indexOf('\n'));
  const text = found.slice(heading.length).trim();
  if (text !== '' && (dryRun || /\d{4}-\d{2}-\d{2}$/.test(heading))) return text;
  throw new Failure(`CHANGELOG.md has no section "## [${version}] - <date>" with content`);
}

/** Writes `SHA256SUMS`, which `sha256sum --check` reads, over all files of the folder. */
async function writeChecksums(folder: string): Promise<{ name: string; bytes: number }[]> {
  const names = readdirSync(folder).sort();
  const lines: string[] = [];
  for (const name of names) {
    const hash = createHash('sha256');
    await pipeline(createReadStream(join(folder, name)), hash);
    lines.push(`${hash.digest('hex')}  ${name}\n`);
  }
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
  return [...names, 'SHA256SUMS'].map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
}

/** Files that no image needs. */
const LEFT_OUT = [':(exclude).ci', ':(exclude)tests', ':(exclude)lab'];

/**
 * Writes the build context of all images as one archive of the committed sources:
 * `docker build -f infra/Dockerfile --build-arg APP=api - < callplane-0.1.0-images.tar.gz`. The same commit gives the same
 * bytes: git takes the times from the commit, and `gzip -n` writes none.
 */
async function writeImageContext(folder: string, version: string): Promise<void> {
  const tar = join(folder, `callplane-${version}-images.tar`);
  const failure = 'The build context of the images cannot be written';
  await run('git', ['archive', '--format=tar', `--output=${tar}`, 'HEAD', '--', '.', ...LEFT_OUT], { failure });
  await run('gzip', ['-n', tar], { failure });
  rmSync(tar, { force: true });
}

/** Options of pnpm for the packages in the images (infra/Dockerfile). The image of the API has the console's bundle. */
export const IN_IMAGES = [
  ...['api', 'signaling', 'cleanup-worker', 'recorder', 'webhook-worker', 'cli', 'console'].flatMap((app) => [
    '--filter',
    `@callplane/${app}...`,
  ]),
  '--prod',
];

/** The part of CycloneDX that differs between two runs of pnpm. */
interface Bom {
  serialNumber?: string;
  metadata: { timestamp?: string; component: { version: string } };
  components: { 'bom-ref': string }[];
  dependencies: { ref: string; dependsOn?: string[] }[];
}

/**
 * The bill of materials of the images as pnpm writes it, in CycloneDX's JSON: every package of their production trees
 * with its licence, its hash from the lockfile, and its dependencies. The same commit gives the same bytes.
 */
export async function billOfMaterials(version: string): Promise<string> {
  const format = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-spec-version', '1.6', '--sbom-type', 'application'];
  const bom = JSON.parse(await run('pnpm', [...IN_IMAGES, ...format], { env: toolsEnvironment() })) as Bom;
  delete bom.metadata.timestamp;
  // Optional, and random.
  delete bom.serialNumber;
  bom.metadata.component.version = version;
  bom.components.sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
  bom.dependencies.sort((a, b) => (a.ref < b.ref ? -1 : 1));
  for (const { dependsOn } of bom.dependencies) dependsOn?.sort();
  return `${JSON.stringify(bom, null, 2)}\n`;
}
