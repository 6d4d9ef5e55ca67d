import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './run.mjs';

/** Which Debian package (and Homebrew formula) has a program. @type {Record<string, { debian: string, homebrew?: string }>} */
const PACKAGES = {
  'redis-server': { debian: 'redis-server', homebrew: 'redis' },
  turnserver: { debian: 'coturn', homebrew: 'coturn' },
  janus: { debian: 'janus' },
  nginx: { debian: 'nginx-light', homebrew: 'nginx' },
  chromium: { debian: 'chromium', homebrew: 'chromium' },
  // With promtool. 23 MB to fetch, 320 MB on the disk: two thirds are time zones for its web page, which nobody opens.
  prometheus: { debian: 'prometheus', homebrew: 'prometheus' },
};
const POLICY = '/usr/sbin/policy-rc.d';

/**
 * Installs the system's packages of those programs that are missing, when this is root on Debian; says what to run
 * when it is not.
 * @param {string[]} programs
 * @param {{ say: (line: string) => void, step: import('./progress.mjs').Step, signal: AbortSignal | undefined }} context
 * @returns {Promise<string[]>} the programs that are still missing
 */
export async function ensurePrograms(programs, { say, step, signal }) {
  const missing = programs.filter((program) => !isOnPath(program));
  if (missing.length === 0) return [];
  if (process.getuid?.() === 0 && isOnPath('apt-get')) {
    const names = debianNames(missing);
    say(`  Installing ${names.join(' and ')} with apt-get (missing on this machine)`);
    try {
      await step(`Installing ${names.join(' and ')}`, () => aptInstall(names, signal));
    } catch (error) {
      if (signal?.aborted) throw error;
      const { message, output } = /** @type {{ message: string, output?: string }} */ (error);
      say(`  ${output?.trimEnd().split('\n').slice(-5).join('\n  ') ?? ''}\n  ${message}`);
    }
  }
  return missing.filter((program) => !isOnPath(program));
}

/**
 * The command that a person can run to install what is missing.
 * @param {string[]} programs
 */
export function installCommand(programs) {
  if (process.platform === 'darwin') {
    const formulae = programs.flatMap((program) => PACKAGES[program]?.homebrew ?? []);
    // Homebrew has no Janus.
    return formulae.length === 0
      ? 'build it from https://janus.conf.meetecho.com'
      : `brew install ${formulae.join(' ')}`;
  }
  const sudo = process.getuid?.() === 0 ? '' : 'sudo ';
  return `${sudo}apt-get install --no-install-recommends ${debianNames(programs).join(' ')}`;
}

/** @param {string[]} programs */
function debianNames(programs) {
  return programs.map((program) => PACKAGES[program]?.debian ?? program);
}

/**
 * @param {string[]} names
 * @param {AbortSignal | undefined} signal
 */
async function aptInstall(names, signal) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = ['-qq', '-o', 'DPkg::Lock::Timeout=300'];
  const failure = `apt-get cannot install ${names.join(' and ')}`;
  // Debian starts a service when its package is installed, unless this file objects; here only the programs are wanted.
  const objects = !existsSync(POLICY);
  if (objects) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    await run('apt-get', [...apt, 'update'], { env, signal, failure });
    await run('apt-get', [...apt, 'install', '-y', '--no-install-recommends', ...names], { env, signal, failure });
  } finally {
    if (objects) rmSync(POLICY, { force: true });
  }
}

/** @param {string} program */
function isOnPath(program) {
  // Debian keeps some programs (nginx) where an ordinary user's PATH does not lead.
  return [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'].some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
