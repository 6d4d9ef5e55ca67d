/**
 * `npm test [-- <Jest arguments>]`: installs and builds what is missing, then runs Jest. `--full` adds the slow files
 * (*.full.test.ts); `--containers` runs tests/containers alone, on this machine's Docker engine. The last line is
 * `N passed, N failed`.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from './lib/bootstrap.mjs';
import { toolsEnvironment } from './lib/dependencies.mjs';
import { explain, Failure } from './lib/failure.mjs';
import { readJson, root } from './lib/files.mjs';
import { installCommand } from './lib/system-packages.mjs';

const full = process.argv.includes('--full');
const containers = process.argv.includes('--containers');
const jestArguments = process.argv.slice(2).filter((argument) => !['--full', '--containers'].includes(argument));
let exitCode = 1;
let counts = { passed: 0, failed: 1 };
const scratch = mkdtempSync(join(tmpdir(), 'callplane-counts-'));
try {
  if (containers) needsDocker();
  await bootstrap({
    say: (line) => console.log(line),
    // With containers all servers are in them.
    programs: containers ? [] : ['redis-server', 'turnserver', 'janus', 'chromium', 'nginx', 'prometheus'],
    onMissing: (missing) => {
      throw new Failure(`The tests need ${missing.join(' and ')}: ${installCommand(missing)}`);
    },
  });
  const countsFile = join(scratch, 'counts.json');
  exitCode = await jest(countsFile);
  counts = readJson(countsFile) ?? counts;
} catch (error) {
  explain(error);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`\n${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = exitCode;

function needsDocker() {
  for (const asked of [['info'], ['compose', 'version']]) {
    const { error, status, stderr } = spawnSync('docker', asked, { encoding: 'utf8' });
    if (status === 0) continue;
    throw new Failure(`These tests need a Docker engine with Compose: ${error?.message ?? stderr.trim()}`);
  }
}

/**
 * @param {string} countsFile
 * @returns {Promise<number>} its exit code
 */
function jest(countsFile) {
  const main = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const child = spawn(process.execPath, [main, ...jestArguments], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {
      ...toolsEnvironment(),
      NODE_OPTIONS: [process.env['NODE_OPTIONS'], '--experimental-vm-modules', '--disable-warning=ExperimentalWarning']
        .filter(Boolean)
        .join(' '),
      CALLPLANE_TEST_COUNTS: countsFile,
      CALLPLANE_TEST_FULL: String(full),
      CALLPLANE_TEST_CONTAINERS: String(containers),
    },
  });
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, () => child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
