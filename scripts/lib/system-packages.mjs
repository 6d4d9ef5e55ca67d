import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from './run.mjs';

/**
 * The Debian packages of the programs that have another name.
 * @type {Record<string, string[]>}
 */
const PACKAGES = {
  turnserver: ['coturn'],
  // Its stream module shares port 443 between https and TURN (infra/nginx/stream.tls.conf).
  nginx: ['nginx-light', 'libnginx-mod-stream'],
};
const POLICY = '/usr/sbin/policy-rc.d';

/**
 * Installs the system packages of missing programs if this process runs as root on Debian. The caller tells the user
 * about the programs that are still missing.
 * @param {string[]} programs
 * @param {{ say: (line: string) => void, step: import('./progress.mjs').Step, signal?: AbortSignal }} context
 * @returns {Promise<string[]>} the programs that are still missing
 */
export async function ensurePrograms(programs, { say, step, signal }) {
  const missing = missingPrograms(programs);
  if (missing.length === 0) return [];
  if (mayInstall()) {
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
  return missingPrograms(missing);
}

/** @param {string[]} programs */
export function missingPrograms(programs) {
  return programs.filter((program) => !isOnPath(program));
}

export function mayInstall() {
  return process.getuid?.() === 0 && isOnPath('apt-get');
}

/**
 * The command with which the user can install missing programs.
 * @param {string[]} programs
 */
export function installCommand(programs) {
  const sudo = process.getuid?.() === 0 ? '' : 'sudo ';
  return `${sudo}apt-get install --no-install-recommends ${debianNames(programs).join(' ')}`;
}

/** @param {string[]} programs */
function debianNames(programs) {
  return programs.flatMap((program) => PACKAGES[program] ?? program);
}

/**
 * @param {string[]} names
 * @param {AbortSignal | undefined} signal
 */
async function aptInstall(names, signal) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = ['-qq', '-o', 'DPkg::Lock::Timeout=300'];
  const failure = `apt-get cannot install ${names.join(' and ')}`;
  // Debian starts a service when its package is installed, unless this file forbids it. Callplane needs only the
  // programs.
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
  // Debian installs some programs (nginx) in a folder that an ordinary user's PATH lacks.
  return [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'].some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
