import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { readJson, root } from './files.mjs';
import { run } from './run.mjs';

const tools = join(root, '.tools');
const pnpmPackage = join(tools, 'node_modules', 'pnpm');
const installedMark = join(root, 'node_modules', '.callplane-installed');

/** An environment whose PATH contains pnpm, above all for turbo. */
export function toolsEnvironment() {
  return {
    ...process.env,
    PATH: [join(tools, 'node_modules', '.bin'), dirname(process.execPath), process.env['PATH']].join(delimiter),
    // Keeps pnpm and turbo from asking questions and drawing spinners.
    CI: 'true',
    TURBO_TELEMETRY_DISABLED: '1',
    NO_UPDATE_NOTIFIER: '1',
  };
}

function pinnedPnpm() {
  return (
    String(readJson(join(root, 'package.json')).packageManager)
      .replace('pnpm@', '')
      .split('+')[0] ?? ''
  );
}

function hasPnpm() {
  return readJson(join(pnpmPackage, 'package.json'))?.version === pinnedPnpm();
}

/**
 * @param {import('./progress.mjs').Step} step
 * @param {AbortSignal} [signal]
 */
export async function ensurePnpm(step, signal) {
  if (hasPnpm()) return;
  mkdirSync(tools, { recursive: true });
  const args = ['install', '--prefix', '.tools', '--no-save', '--no-audit', '--no-fund', `pnpm@${pinnedPnpm()}`];
  // npm passes its own path to its scripts. Without it (node scripts/dev.mjs start), the PATH is searched for npm.
  const npmCli = process.env['npm_execpath'];
  const [file, before] = npmCli?.endsWith('npm-cli.js') ? [process.execPath, [npmCli]] : ['npm', []];
  const failure = 'pnpm cannot be installed from the npm registry';
  await step(`Installing pnpm ${pinnedPnpm()}`, () => run(file, [...before, ...args], { signal, failure }));
}

function hasDependencies() {
  return existsSync(installedMark) && readFileSync(installedMark, 'utf8') === wantedDependencies();
}

/**
 * @param {import('./progress.mjs').Step} step
 * @param {AbortSignal} [signal]
 */
export async function ensureDependencies(step, signal) {
  if (hasDependencies()) return;
  const pnpm = join(tools, 'node_modules', '.bin', 'pnpm');
  const failure = 'The dependencies cannot be installed';
  await step('Installing dependencies', () =>
    run(pnpm, ['install', '--frozen-lockfile'], { env: toolsEnvironment(), signal, failure }),
  );
  writeFileSync(installedMark, wantedDependencies());
}

/**
 * Changes whenever an install could change node_modules: hashes its inputs and the platform of the binaries. These run on
 * every version of Node, so another version needs no other install.
 */
function wantedDependencies() {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests()])
    hash.update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

/** Every package.json of the workspace, relative to the repository's root. */
function manifests() {
  const inFolders = ['apps', 'packages'].flatMap((folder) =>
    existsSync(join(root, folder))
      ? readdirSync(join(root, folder)).map((name) => join(folder, name, 'package.json'))
      : [],
  );
  return ['package.json', 'lab/package.json', ...inFolders.filter((file) => existsSync(join(root, file)))].sort();
}
