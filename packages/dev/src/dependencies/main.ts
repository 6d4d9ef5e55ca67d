/**
 * `npm run dependencies:check [-- --offline]`: fails on licences that no list allows, on direct dependencies without a
 * reason in pnpm-workspace.yaml, and on known advisories of high or critical severity. Advisories come from the registry;
 * if it does not serve them, pnpm says so. pnpm itself refuses install scripts that `allowBuilds` of pnpm-workspace.yaml
 * does not name.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, root, run, toolsEnvironment } from '../bootstrap.js';
import { IN_IMAGES } from '../release/main.js';

/**
 * Licences allowed in the images: permissive, compatible with Apache 2.0, and without a duty to publish source code. An
 * expression of several licences is an entry of its own.
 */
const ALLOWED = [
  ...['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'CC0-1.0', 'ISC', 'MIT', 'Unlicense'],
  ...['Python-2.0', '(MIT OR CC0-1.0)', '(MIT AND Zlib)', 'MIT and ISC', 'Apache-2.0 AND MIT'],
];
/** Licences that are also allowed for build and test tools, which this project does not distribute. */
const ALLOWED_FOR_TOOLS = [...ALLOWED, 'CC-BY-4.0', 'EPL-2.0', 'MPL-2.0', 'PSF-2.0'];

const CATALOGUE = 'pnpm-workspace.yaml';

export async function main(args: string[]): Promise<void> {
  const wrong = [
    ...(await forbiddenLicences(['--recursive'], ALLOWED_FOR_TOOLS)),
    ...(await forbiddenLicences(IN_IMAGES, ALLOWED)),
    ...dependenciesWithoutReason(),
  ];
  if (wrong.length > 0) throw new Failure(`${wrong.length} findings:\n  ${wrong.join('\n  ')}`);
  console.log('Every licence is allowed, and every direct dependency has a reason.');
  if (args.includes('--offline')) {
    console.log('Known advisories: NOT CHECKED.');
    return;
  }
  const audit = ['audit', '--audit-level', 'high', '--ignore-registry-errors'];
  const { status } = spawnSync('pnpm', audit, { cwd: root, env: toolsEnvironment(), stdio: 'inherit' });
  if (status !== 0) throw new Failure('pnpm audit has found advisories, or cannot run');
}

/** @param which the projects whose packages are checked */
async function forbiddenLicences(which: string[], allowed: readonly string[]): Promise<string[]> {
  const listed = await run('pnpm', [...which, 'licenses', 'list', '--json'], { env: toolsEnvironment() });
  const packages = JSON.parse(listed) as Record<string, { name: string }[]>;
  return Object.entries(packages)
    .filter(([licence]) => !allowed.includes(licence))
    .map(([licence, found]) => `${licence}: ${found.map(({ name }) => name).join(', ')}`);
}

/** Each group of the catalogue, up to an empty line, begins with a comment that gives its reason. */
function dependenciesWithoutReason(): string[] {
  const settings = readFileSync(join(root, CATALOGUE), 'utf8');
  const catalogue = /^catalog:\n([^]*?)^\S/m.exec(settings)?.[1] ?? '';
  const groups = catalogue.split(/\n\s*\n/).map((group) => group.trim());
  if (groups.length < 10) return [`${CATALOGUE} has no catalogue in groups`];
  return groups
    .filter((group) => group !== '' && !group.startsWith('#'))
    .map((group) => `no comment in ${CATALOGUE} gives the reason of ${group.split(':')[0]}`);
}
