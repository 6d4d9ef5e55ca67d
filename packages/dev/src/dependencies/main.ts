/**
 * `npm run dependencies:check [-- --offline]`: fails on licences that no list allows, on direct dependencies without a
 * row in docs/decisions/0002-dependencies.md, and on known advisories of high or critical severity. Advisories come from
 * the registry; if it does not serve them, pnpm says so. pnpm itself refuses install scripts that `allowBuilds` of
 * pnpm-workspace.yaml does not name.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { Failure, root, run, toolsEnvironment } from '../bootstrap.js';
import { IN_IMAGES } from '../release/sbom.js';

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

const TABLE = 'docs/decisions/0002-dependencies.md';

export async function main(args: string[]): Promise<void> {
  const wrong = [
    ...(await forbiddenLicences(['--recursive'], ALLOWED_FOR_TOOLS)),
    ...(await forbiddenLicences(IN_IMAGES, ALLOWED)),
    ...dependenciesWithoutRow(),
  ];
  if (wrong.length > 0) throw new Failure(`${wrong.length} findings:\n  ${wrong.join('\n  ')}`);
  console.log('Every licence is allowed, and every direct dependency has a row.');
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

function dependenciesWithoutRow(): string[] {
  const settings = parse(readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8')) as { catalog: object };
  const rows = readFileSync(join(root, TABLE), 'utf8').matchAll(/^\| ([^|]+?) +\| [^|\s]/gm);
  const named = [...rows].flatMap(([, names = '']) => names.split(/,\s*/));
  return Object.keys(settings.catalog)
    .filter((name) => !named.includes(name))
    .map((name) => `${name} has no row in ${TABLE}`);
}
