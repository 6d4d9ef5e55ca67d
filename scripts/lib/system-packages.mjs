import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { findProgram } from './files.mjs';
import { findJanus, installJanus, isCurrent, JANUS_AT_LEAST } from './janus.mjs';
import { run } from './run.mjs';

/**
 * The Debian packages of the programs that have another name.
 * @type {Record<string, string[]>}
 */
const PACKAGES = {
  ip: ['iproute2'],
  turnserver: ['coturn'],
  // Its stream module shares port 443 between https and TURN (infra/nginx/stream.tls.conf).
  nginx: ['nginx-light', 'libnginx-mod-stream'],
};
const POLICY = '/usr/sbin/policy-rc.d';
const APT = ['-qq', '-o', 'DPkg::Lock::Timeout=300'];
const JANUS_TITLE = `Unpacking Janus from Debian's next release`;

/**
 * @typedef {{ say: (line: string) => void, step: import('./progress.mjs').Step, signal?: AbortSignal }} Context
 */

/**
 * Installs missing programs: Debian's packages if this process runs as root on Debian, and a current Janus as any user.
 * The caller tells the user about the programs that are still missing. JANUS_PATH then names the Janus to run, for this
 * process and its children.
 * @param {string[]} programs
 * @param {Context} context
 * @returns {Promise<string[]>} the programs that are still missing; `janus` also if there is only an older one
 */
export async function ensurePrograms(programs, context) {
  const missing = missingPrograms(programs);
  const wanted = process.env['JANUS_PATH'] ? missing.filter((program) => program !== 'janus') : missing;
  if (wanted.length > 0) await installPrograms(wanted, context);
  if (programs.includes('janus')) {
    const janus = findJanus();
    if (janus !== undefined) process.env['JANUS_PATH'] = janus.program;
  }
  return missingPrograms(missing);
}

/**
 * @param {string[]} missing
 * @param {Context} context
 */
async function installPrograms(missing, { say, step, signal }) {
  /** @param {string} title @param {() => Promise<void>} work */
  const attempt = async (title, work) => {
    try {
      await step(title, work);
      return true;
    } catch (error) {
      if (signal?.aborted) throw error;
      const { message, output } = /** @type {{ message: string, output?: string }} */ (error);
      say([...(output ?? '').trimEnd().split('\n').slice(-5), message].map((line) => `  ${line}`).join('\n'));
      return false;
    }
  };
  const apt = async (/** @type {string[]} */ names) => {
    if (names.length === 0) return;
    const title = `Installing ${names.join(' and ')}`;
    say(`  ${title} with apt-get (missing on this machine)`);
    await attempt(title, () => aptInstall(names, signal));
  };
  const names = debianNames(missing.filter((program) => program !== 'janus'));
  const wantsJanus = missing.includes('janus');
  if (!mayInstall()) {
    if (wantsJanus) await attempt(JANUS_TITLE, () => installJanus({ say, signal }));
    return;
  }
  const knowsPackages = await attempt('Reading the lists of packages', () => aptUpdate(signal));
  if (wantsJanus && knowsPackages && isCurrent(await candidate('janus'))) names.push('janus');
  if (!wantsJanus || names.includes('janus')) return apt(names);
  const installed = attempt(JANUS_TITLE, () => installJanus({ say, signal }));
  await Promise.all([apt(names), installed]);
  // An older Janus is better than none, for development.
  if (!(await installed) && findJanus() === undefined) await apt(['janus']);
}

/** @param {string[]} programs */
export function missingPrograms(programs) {
  return programs.filter((program) =>
    program === 'janus' ? !isCurrent(findJanus()?.version) : findProgram(program) === undefined,
  );
}

export function mayInstall() {
  return process.getuid?.() === 0 && findProgram('apt-get') !== undefined;
}

/**
 * How the user can get missing programs.
 * @param {string[]} programs
 */
export function installCommand(programs) {
  const sudo = process.getuid?.() === 0 ? '' : 'sudo ';
  const names = debianNames(programs.filter((program) => program !== 'janus'));
  return [
    ...(names.length > 0 ? [`${sudo}apt-get install --no-install-recommends ${names.join(' ')}`] : []),
    ...(programs.includes('janus') ? [`set JANUS_PATH to a Janus ${JANUS_AT_LEAST} or later`] : []),
  ].join(', and ');
}

/** @param {string[]} programs */
function debianNames(programs) {
  return programs.flatMap((program) => PACKAGES[program] ?? program);
}

/** @param {AbortSignal | undefined} signal */
async function aptUpdate(signal) {
  await run('apt-get', [...APT, 'update'], { signal, failure: 'apt-get cannot read the lists of packages' });
}

/**
 * The version of a package that apt-get would install, without its epoch and Debian's part.
 * @param {string} name
 */
async function candidate(name) {
  const policy = await run('apt-cache', ['policy', name], { env: { ...process.env, LC_ALL: 'C' } });
  return /^ +Candidate: (?:\d+:)?([\d.]+)/m.exec(policy)?.[1];
}

/**
 * @param {string[]} names
 * @param {AbortSignal | undefined} signal
 */
async function aptInstall(names, signal) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const failure = `apt-get cannot install ${names.join(' and ')}`;
  // Debian starts a service when its package is installed, unless this file forbids it. Callplane needs only the
  // programs.
  const objects = !existsSync(POLICY);
  if (objects) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    await run('apt-get', [...APT, 'install', '-y', '--no-install-recommends', ...names], { env, signal, failure });
  } finally {
    if (objects) rmSync(POLICY, { force: true });
  }
}
