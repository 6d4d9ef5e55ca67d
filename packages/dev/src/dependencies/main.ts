/**
 * `npm run dependencies:check [-- --offline]`: checks the whole dependency tree. Fails on licences and install scripts
 * that no list allows, on direct dependencies without a row in docs/decisions/0002-dependencies.md, and on known
 * advisories of high or critical severity. Advisories come from the registry. With `--offline`, or if the registry does
 * not answer, the output says that they were not checked.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, root } from '../bootstrap.js';
import { askForAdvisories } from './advisories.js';
import { duplicates, checkInstallScripts, checkLicences, checkTable, readTable } from './rules.js';
import { readTree, readWorkspace, type Package } from './tree.js';

const TABLE = 'docs/decisions/0002-dependencies.md';

export function main(args: string[]): void {
  const { catalogue, built, ignored, lock } = readWorkspace();
  const { packages, elsewhere } = readTree(lock);
  const shipped = packages.filter((each) => each.shipped);
  console.log(
    `${packages.length} packages, ${shipped.length} of them in images, ${catalogue.length} asked for directly.`,
  );
  console.log(`${elsewhere} more are for other platforms. They are not installed here and were not checked.`);

  console.log('\nLicences (all, in images):');
  for (const [licence, count, inImages] of countLicences(packages)) {
    console.log(`  ${licence.padEnd(24)} ${String(count).padStart(4)} ${String(inImages).padStart(4)}`);
  }

  console.log('\nInstall scripts:');
  for (const { name, version, scripts } of packages.filter((each) => each.scripts.length > 0)) {
    const how = built.includes(name) ? 'run' : ignored.includes(name) ? 'never run' : 'NOT LISTED';
    console.log(`  ${name}@${version}: ${scripts.join(', ')} (${how})`);
  }

  console.log('\nDirect dependencies in several versions:');
  for (const { name, versions, shipped: inImages } of duplicates(packages, catalogue)) {
    console.log(`  ${name}: ${versions.join(', ')}${inImages > 1 ? ` (${inImages} of them in images)` : ''}`);
  }

  const grave = advisories(args.includes('--offline'));
  const wrong = [
    ...checkLicences(packages),
    ...checkInstallScripts(packages, { built, ignored }),
    ...checkTable(catalogue, readTable(readFileSync(join(root, TABLE), 'utf8'))).map((line) => `${TABLE}: ${line}`),
    ...grave,
  ];
  if (wrong.length > 0) throw new Failure(`${wrong.length} findings:\n  ${wrong.join('\n  ')}`);
  console.log('\nNo problems found.');
}

/**
 * Prints the registry's advisories.
 * @returns the high and critical ones
 */
function advisories(offline: boolean): string[] {
  const answer = offline ? { unanswered: 'not asked for' } : askForAdvisories();
  if ('unanswered' in answer) {
    console.log(`\nKnown advisories: NOT CHECKED (${answer.unanswered}).`);
    return [];
  }
  console.log(`\nKnown advisories: ${answer.advisories.length}`);
  for (const { package: name, severity, title, url } of answer.advisories) {
    console.log(`  ${severity.padEnd(8)} ${name}: ${title} ${url}`);
  }
  return answer.advisories
    .filter(({ severity }) => severity === 'high' || severity === 'critical')
    .map(({ package: name, severity, title, url }) => `${name}: ${title} (${severity}, ${url})`);
}

function countLicences(packages: readonly Package[]) {
  const counts = new Map<string, [count: number, inImages: number]>();
  for (const { licence, shipped } of packages) {
    const [count, inImages] = counts.get(licence ?? 'none') ?? [0, 0];
    counts.set(licence ?? 'none', [count + 1, inImages + (shipped ? 1 : 0)]);
  }
  return [...counts]
    .map(([licence, [count, inImages]]) => [licence, count, inImages] as const)
    .sort((a, b) => b[1] - a[1]);
}
