/**
 * `npm run dependencies:check [-- --offline]`: looks at the whole tree of dependencies. Fails on licences and install
 * scripts that nobody has allowed, on direct dependencies without a row in docs/decisions/0002-dependencies.md, and on
 * known advisories of high severity. Those come from the registry: with `--offline`, or when it does not answer, the
 * output says that nothing is known of them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { askForAdvisories } from './dependencies/advisories.mjs';
import { duplicates, judgeInstallScripts, judgeLicences, judgeTable, readTable } from './dependencies/rules.mjs';
import { readTree, readWorkspace } from './dependencies/tree.mjs';
import { explain, Failure } from './lib/failure.mjs';
import { root } from './lib/files.mjs';

const TABLE = 'docs/decisions/0002-dependencies.md';

try {
  const { catalogue, built, ignored, lock } = readWorkspace();
  const { packages, elsewhere } = readTree(lock);
  const shipped = packages.filter((each) => each.shipped);
  console.log(
    `${packages.length} packages, ${shipped.length} of them in images, ${catalogue.length} asked for directly.`,
  );
  console.log(`${elsewhere} more are for other platforms: not installed here, so not looked at.`);

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

  const grave = advisories();
  const wrong = [
    ...judgeLicences(packages),
    ...judgeInstallScripts(packages, { built, ignored }),
    ...judgeTable(catalogue, readTable(readFileSync(join(root, TABLE), 'utf8'))).map((line) => `${TABLE}: ${line}`),
    ...grave,
  ];
  if (wrong.length > 0) throw new Failure(`${wrong.length} findings:\n  ${wrong.join('\n  ')}`);
  console.log('\nNothing to object to.');
} catch (error) {
  explain(error);
  process.exitCode = 1;
}

/** Prints what the registry knows. @returns {string[]} what must not stay */
function advisories() {
  const answer = process.argv.includes('--offline') ? { unanswered: 'not asked for' } : askForAdvisories();
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

/** @param {readonly import('./dependencies/tree.mjs').Package[]} packages */
function countLicences(packages) {
  /** @type {Map<string, [count: number, inImages: number]>} */
  const counts = new Map();
  for (const { licence, shipped } of packages) {
    const [count, inImages] = counts.get(licence ?? 'none') ?? [0, 0];
    counts.set(licence ?? 'none', [count + 1, inImages + (shipped ? 1 : 0)]);
  }
  return [...counts]
    .map(([licence, [count, inImages]]) => /** @type {const} */ ([licence, count, inImages]))
    .sort((a, b) => b[1] - a[1]);
}
