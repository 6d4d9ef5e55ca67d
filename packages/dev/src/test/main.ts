/**
 * `npm test [-- <Jest arguments>]`: installs and builds missing parts, then runs Jest. Tiers:
 *
 * - without an option: all of packages/ and apps/ but the files named *.slow.test.ts, and tests/ends
 * - `--all`: the slow files and tests/ too; `--rest`: only these, without tests/line
 * - `--full`: everything of `--all` and the files named *.full.test.ts, and then all with Node 26, too
 * - `--image`: the contract of the API, against the file system of its container image, and media, against the Janus of
 *   infra/janus, which it builds; the files named *.image.test.ts
 * - `--lab`: the tests of lab/ and tests/line; `--containers`: tests/containers, on this machine's Docker engine
 *
 * A path or `--testPathPatterns` selects files of all tiers. `--retry` runs a few failed files once more, alone, and
 * lists a file that then passes as unstable. `--recommended` runs the tier with Node 26. The last line is `N passed, N
 * failed`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { SHORT_RUN_FLAGS } from '@callplane/local-servers';
import {
  ensurePrograms,
  explain,
  Failure,
  installCommand,
  progress,
  readJson,
  root,
  run,
  toolsEnvironment,
} from '../bootstrap.js';
import type { FileCounts } from './count-reporter.js';

/** `npm run test:all -- --rest` passes two of them: the first one here counts. */
const TIERS = ['rest', 'all', 'full', 'image', 'lab', 'containers'] as const;
const OWN_FLAGS = ['--retry', '--recommended', ...TIERS.map((tier) => `--${tier}`)];
type Tier = 'quick' | 'some' | (typeof TIERS)[number];

const QUICK_PROGRAMS = ['redis-server', 'janus', 'chromium-headless-shell', 'ffmpeg'];
const PROGRAMS = [...QUICK_PROGRAMS, 'turnserver', 'nginx', 'prometheus', 'pgbouncer', 'ip', 'iptables'];
/** Of whole tiers, and of `--rest` with selected files. */
const ALL_PROGRAMS = [...PROGRAMS, 'firefox-esr'];
const PROGRAMS_OF: Partial<Record<Tier, string[]>> = {
  quick: QUICK_PROGRAMS,
  image: ['redis-server'],
  rest: ALL_PROGRAMS,
  all: ALL_PROGRAMS,
  full: [...ALL_PROGRAMS, 'prometheus-alertmanager'],
};

const NODE_OPTIONS = [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  // Twice the default: seven files of the API and the gateway take 18.8 instead of 21.1 s of processor time (measured).
  '--max-semi-space-size=32',
];

const say = (line: string) => console.log(line);

export async function main(args: string[]): Promise<void> {
  const tier = tierOf(args);
  const jestArgs = args.filter((argument) => !OWN_FLAGS.includes(argument));
  const total = { passed: 0, failed: 0 };
  try {
    // The container tests run all servers in containers.
    if (tier === 'containers') needsDocker();
    else await needsPrograms(PROGRAMS_OF[tier] ?? PROGRAMS);
    const programs = [
      ...(args.includes('--recommended') ? [] : [process.execPath]),
      ...(args.includes('--recommended') || (tier === 'full' && !isRecommended()) ? [await recommendedNode()] : []),
    ];
    for (const program of programs) {
      if (program !== process.execPath) console.log(`\nWith Node ${RECOMMENDED}:\n`);
      const scratch = mkdtempSync(join(tmpdir(), 'callplane-tests-'));
      process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
      if (tier === 'image') await Promise.all([makeImage('api', scratch), makeJanus()]);
      let files = await runJest(program, jestArgs, tier, scratch);
      if (args.includes('--retry')) files = await retryFailed(program, files, tier, scratch);
      for (const file of files) {
        total.passed += file.passed;
        total.failed += file.failed;
      }
    }
  } catch (error) {
    explain(error);
    total.failed += 1;
  }
  process.exitCode = total.failed === 0 ? 0 : 1;
  console.log(`\n${total.passed} passed, ${total.failed} failed`);
}

function tierOf(args: readonly string[]): Tier {
  const named = TIERS.find((tier) => args.includes(`--${tier}`));
  const selects = args.some((argument) => !argument.startsWith('-') || argument.startsWith('--testPath'));
  // Selected files do not run all statements, which the whole tiers compare.
  if (selects && (named === undefined || named === 'all')) return 'some';
  return named ?? 'quick';
}

/** @param scratch keeps what one run of a tier has seen, for the run of its failed files. */
async function runJest(program: string, args: string[], tier: Tier, scratch: string): Promise<FileCounts[]> {
  const countsFile = join(scratch, 'counts.json');
  rmSync(countsFile, { force: true });
  const exitCode = await jest(program, args, {
    CALLPLANE_TEST_TIER: tier,
    ...(tier === 'quick' || tier === 'all' ? recordStatements(join(scratch, 'statements')) : {}),
    CALLPLANE_TEST_COUNTS: countsFile,
  });
  const files = (readJson(countsFile) ?? []) as FileCounts[];
  const isExplained = files.length > 0 && (exitCode === 0 || files.some(({ failed }) => failed > 0));
  return isExplained ? files : [...files, UNEXPLAINED];
}

/**
 * Jest's teardown compares the statements that the tests run with their types (packages/testing/src/statements). The run
 * of the failed files adds its own to the first run, because most statements run in other files.
 */
function recordStatements(folder: string): NodeJS.ProcessEnv {
  mkdirSync(folder, { recursive: true });
  const recorder = join(root, 'packages', 'testing', 'jest', 'record-statements.mjs');
  return { CALLPLANE_STATEMENTS: folder, NODE_OPTIONS: `--import ${recorder}` };
}

/**
 * Runs the files that failed once more, one after the other. A file that passes then depends on timing: it is listed, so
 * that it gets mended, but does not fail the run. Many failed files are a defect and are not run again.
 */
async function retryFailed(program: string, files: FileCounts[], tier: Tier, scratch: string): Promise<FileCounts[]> {
  const failed = files.filter((file) => file.failed > 0).map(({ path }) => path);
  if (failed.length === 0 || failed.length > RETRIED_FILES_MAX || files.includes(UNEXPLAINED)) return files;
  console.log(`\nRunning ${failed.length} failed file(s) once more:\n`);
  const again = await runJest(program, ['--runInBand', '--runTestsByPath', ...failed], tier, scratch);
  for (const { path, ...counts } of again) {
    if (counts.failed > 0 || counts.passed === 0) continue;
    console.log(`UNSTABLE  ${path} failed, and passed when it ran again alone`);
  }
  return [...files.filter(({ path }) => !again.some((file) => file.path === path)), ...again];
}

/**
 * Copies the files of an app's image, with the script of its Dockerfile. The install has checked the lockfile. CI names
 * the folder, in which it has them copied beside other tests.
 */
async function makeImage(app: string, scratch: string): Promise<void> {
  const folder = (process.env['CALLPLANE_TEST_IMAGES'] ??= scratch);
  if (existsSync(join(folder, app))) return;
  mkdirSync(folder, { recursive: true });
  const draft = join(folder, `${app}.draft`);
  rmSync(draft, { recursive: true, force: true });
  const env = { ...toolsEnvironment(), pnpm_config_trust_lockfile: 'true' };
  await progress(say)(`Copying the image of ${app}`, () => run('infra/image/prune.sh', [app, draft], { env }));
  renameSync(draft, join(folder, app));
}

/** Builds Janus with the script of its Dockerfile, once for each version of the folder. */
async function makeJanus(): Promise<void> {
  const source = join(root, 'infra', 'janus');
  const hash = createHash('sha256');
  for (const name of readdirSync(source)
    .filter((name) => /^build|\.patch$/.test(name))
    .sort()) {
    hash.update(readFileSync(join(source, name)));
  }
  const folder = join(root, '.tools', `janus-of-the-image-${hash.digest('hex').slice(0, 12)}`);
  if (!existsSync(folder)) {
    const draft = `${folder}.draft`;
    const failure = 'infra/janus/build.sh fails';
    await progress(say)('Building the Janus of the image', () => run(join(source, 'build.sh'), [draft], { failure }));
    renameSync(draft, folder);
  }
  process.env['JANUS_PATH'] = join(folder, 'bin', 'janus');
}

async function needsPrograms(programs: string[]): Promise<void> {
  const missing = await ensurePrograms(programs, { say, step: progress(say) });
  if (missing.length > 0) throw new Failure(`The tests need ${missing.join(' and ')}: ${installCommand(missing)}`);
}

function needsDocker(): void {
  for (const command of [['info'], ['compose', 'version']]) {
    const { error, status, stderr } = spawnSync('docker', command, { encoding: 'utf8' });
    if (status === 0) continue;
    throw new Failure(`These tests need a Docker engine with Compose: ${error?.message ?? stderr.trim()}`);
  }
}

/** @returns the exit code of Jest */
function jest(program: string, args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const main = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const tools = toolsEnvironment();
  const child = spawn(program, [...SHORT_RUN_FLAGS, main, ...args], {
    cwd: root,
    // `--watch` reads keys.
    stdio: [args.some((argument) => argument.startsWith('--watch')) ? 'inherit' : 'ignore', 'inherit', 'inherit'],
    env: {
      ...tools,
      // Tests run `node` by its name, too.
      PATH: [dirname(program), tools.PATH].join(delimiter),
      // Of the apps that tests start. Node 20 has no such cache.
      CALLPLANE_TEST_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'compiled'),
      ...env,
      NODE_OPTIONS: [process.env['NODE_OPTIONS'], ...NODE_OPTIONS, env['NODE_OPTIONS']].filter(Boolean).join(' '),
    },
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** Node's current long-term release, which the README recommends and the images run. */
const RECOMMENDED = '26.12.1';

function isRecommended(): boolean {
  return Number.parseInt(process.versions.node) >= Number.parseInt(RECOMMENDED);
}

/** The recommended Node: this one, or the binary of nodejs.org from a package of npm. */
async function recommendedNode(): Promise<string> {
  if (isRecommended()) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(root, '.tools', 'node');
  const installed = readJson(join(folder, 'node_modules', name, 'package.json')) as { version: string } | undefined;
  if (installed?.version !== RECOMMENDED) {
    const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', `${name}@${RECOMMENDED}`];
    const failure = `Node ${RECOMMENDED} cannot be installed from the npm registry`;
    await progress(say)(`Installing Node ${RECOMMENDED}`, () => run('npm', args, { failure }));
  }
  return join(folder, 'node_modules', name, 'bin', 'node');
}

/** More failed files than this are not run again. */
const RETRIED_FILES_MAX = 6;

/** A run that reports no file, or that fails without a failed test. It counts as one failed test. */
const UNEXPLAINED: FileCounts = { path: '', passed: 0, failed: 1 };
