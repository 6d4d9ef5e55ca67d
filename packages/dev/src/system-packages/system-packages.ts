import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run, type Step } from '../bootstrap.js';

/** The Debian package and Homebrew formula of each program. */
const PACKAGES: Record<string, { debian: string; homebrew?: string }> = {
  'redis-server': { debian: 'redis-server', homebrew: 'redis' },
  turnserver: { debian: 'coturn', homebrew: 'coturn' },
  janus: { debian: 'janus' },
  nginx: { debian: 'nginx-light', homebrew: 'nginx' },
  chromium: { debian: 'chromium', homebrew: 'chromium' },
  // Includes promtool. Downloads 23 MB and takes 320 MB on the disk; two thirds of that are time zones for its web
  // page, which this project does not use.
  prometheus: { debian: 'prometheus', homebrew: 'prometheus' },
};
const POLICY = '/usr/sbin/policy-rc.d';

/**
 * Installs the system packages of missing programs if this process runs as root on Debian. The caller tells the user
 * about the programs that are still missing.
 * @returns the programs that are still missing
 */
export async function ensurePrograms(
  programs: string[],
  { say, step, signal }: { say: (line: string) => void; step: Step; signal?: AbortSignal },
): Promise<string[]> {
  const missing = programs.filter((program) => !isOnPath(program));
  if (missing.length === 0) return [];
  if (process.getuid?.() === 0 && isOnPath('apt-get')) {
    const names = debianNames(missing);
    say(`  Installing ${names.join(' and ')} with apt-get (missing on this machine)`);
    try {
      await step(`Installing ${names.join(' and ')}`, () => aptInstall(names, signal));
    } catch (error) {
      if (signal?.aborted) throw error;
      const { message, output } = error as { message: string; output?: string };
      say(`  ${output?.trimEnd().split('\n').slice(-5).join('\n  ') ?? ''}\n  ${message}`);
    }
  }
  return missing.filter((program) => !isOnPath(program));
}

/** The command with which the user can install missing programs. */
export function installCommand(programs: string[]) {
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

function debianNames(programs: string[]) {
  return programs.map((program) => PACKAGES[program]?.debian ?? program);
}

async function aptInstall(names: string[], signal: AbortSignal | undefined) {
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

function isOnPath(program: string) {
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
