import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { readJson, root } from './files.mjs';
import { run } from './run.mjs';

const tools = join(root, '.tools');
const pnpmPackage = join(tools, 'node_modules', 'pnpm');
const installedMark = join(root, 'node_modules', '.callplane-installed');

/** The environment in which pnpm is found by whoever looks for it, turbo above all. */
export function toolsEnvironment() {
  return {
    ...process.env,
    PATH: [join(tools, 'node_modules', '.bin'), dirname(process.execPath), process.env['PATH']].join(delimiter),
    // Neither may ask a question or draw a spinner.
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

export function hasPnpm() {
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
  // npm tells its scripts where it is; without that (node scripts/start.mjs) it is looked for.
  const npmCli = process.env['npm_execpath'];
  const [file, before] = npmCli?.endsWith('npm-cli.js') ? [process.execPath, [npmCli]] : ['npm', []];
  const failure = 'pnpm cannot be installed from the npm registry';
  await step(`Installing pnpm ${pinnedPnpm()}`, () => run(file, [...before, ...args], { signal, failure }));
}

export function hasDependencies() {
  return existsSync(installedMark) && readFileSync(installedMark, 'utf8') === wantedDependencies();
}

/**
 * @param {import('./progress.mjs').Step} step
 * @param {AbortSignal} [signal]
 */
export async function ensureDependencies(step, signal) {
  if (hasDependencies()) return;
  const pnpm = join(pnpmPackage, 'bin', 'pnpm.cjs');
  const failure = 'The dependencies cannot be installed';
  await step('Installing dependencies', () =>
    run(process.execPath, [pnpm, 'install', '--frozen-lockfile'], { env: toolsEnvironment(), signal, failure }),
  );
  writeFileSync(installedMark, wantedDependencies());
}

/** Changes whenever an install could change node_modules: its inputs, and the platform that binaries are for. */
function wantedDependencies() {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}-${process.versions.modules}`);
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests()])
    hash.update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

/** Every package.json of the workspace, relative to its top. */
export function manifests() {
  const inFolders = ['apps', 'packages'].flatMap((folder) =>
    existsSync(join(root, folder))
      ? readdirSync(join(root, folder)).map((name) => join(folder, name, 'package.json'))
      : [],
  );
  return ['package.json', ...inFolders.filter((file) => existsSync(join(root, file)))].sort();
}
