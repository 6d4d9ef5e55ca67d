import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { Failure } from './failure.mjs';
import { findProgram, root } from './files.mjs';
import { waitForLock } from './lock.mjs';
import { run } from './run.mjs';

/** The first release in which a participant of a call can no longer stop or crash Janus (SECURITY.md). */
export const JANUS_AT_LEAST = '1.4.1';
/** The first release of Debian that has it. */
const SUITE = 'forky';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const FOLDER = join(root, '.tools', `janus-${JANUS_AT_LEAST}`);
/** Processors with packages that were tried. */
const PROCESSORS = ['x64', 'arm64'];

/** @typedef {{ program: string, version: string }} Janus */

/**
 * The Janus that the local start and the tests run: the one that JANUS_PATH names, else `janus` in the PATH or the one
 * that installJanus() has unpacked. An older one counts only if there is no current one.
 * @param {string} [folder]
 * @returns {Janus | undefined}
 */
export function findJanus(folder = FOLDER) {
  const named = process.env['JANUS_PATH'];
  if (named) {
    const found = withVersion(resolve(root, named));
    if (found === undefined)
      throw new Failure(`JANUS_PATH names ${named}, which is no Janus that runs on this machine`);
    return found;
  }
  const found = [findProgram('janus'), programIn(folder)]
    .flatMap((program) => (program === undefined ? [] : withVersion(program)))
    .filter((janus) => janus !== undefined);
  return found.find(({ version }) => isCurrent(version)) ?? found[0];
}

/** @param {string | undefined} version */
export function isCurrent(version) {
  const [is, least] = [version ?? '0', JANUS_AT_LEAST].map((text) => text.split('.').map(Number));
  const different = least?.findIndex((number, i) => number !== (is?.[i] ?? 0)) ?? -1;
  return different === -1 || (is?.[different] ?? 0) > (least?.[different] ?? 0);
}

/**
 * Unpacks the signed packages of Janus and of every library that it needs, from Debian's next release, into a folder of
 * their own. Needs no rights, changes nothing outside of the folder and runs beside apt-get. The folder gets its name
 * last, so an interrupted installation is made again.
 * @param {{ say: (line: string) => void, signal?: AbortSignal | undefined, folder?: string }} context
 */
export async function installJanus({ say, signal = new AbortController().signal, folder = FOLDER }) {
  checkMachine();
  const release = await waitForLock(`${folder}.lock`, { say, signal, what: 'installation of Janus' });
  try {
    // Another start may have installed it meanwhile.
    if (withVersion(programIn(folder))) return;
    const draft = `${folder}.draft`;
    rmSync(draft, { recursive: true, force: true });
    await download(draft, signal);
    const unpacked = join(draft, 'unpacked');
    for (const file of filesIn(join(draft, 'cache', 'archives'), /\.deb$/)) {
      await run('dpkg-deb', ['-x', file, unpacked], { signal, failure: `${file} cannot be unpacked` });
    }
    useOwnLibraries(join(unpacked, 'usr'));
    const version = withVersion(programIn(unpacked))?.version;
    if (!isCurrent(version)) throw new Failure(`Debian's ${SUITE} has Janus ${version ?? 'that does not run here'}`);
    rmSync(folder, { recursive: true, force: true });
    renameSync(unpacked, folder);
    rmSync(draft, { recursive: true, force: true });
  } finally {
    release();
  }
}

function checkMachine() {
  const missing = ['apt-get', 'dpkg-deb'].filter((program) => findProgram(program) === undefined);
  if (missing.length > 0) throw new Failure(`Debian's package needs ${missing.join(' and ')}`);
  if (!PROCESSORS.includes(process.arch)) throw new Failure(`Debian's package is for amd64 and arm64`);
  if (!existsSync(KEYRING)) throw new Failure(`Debian's signatures need ${KEYRING} (package debian-archive-keyring)`);
}

/**
 * Downloads the packages as if none were installed. apt-get checks their signatures.
 * @param {string} folder
 * @param {AbortSignal} signal
 */
async function download(folder, signal) {
  for (const name of ['lists/partial', 'cache/archives/partial', 'none']) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  const file = (/** @type {string} */ name) => join(folder, name);
  writeFileSync(file('status'), '');
  writeFileSync(file('sources.list'), `deb [signed-by=${KEYRING}] ${debianMirror()} ${SUITE} main\n`);
  const systemWide = '/etc/apt/apt.conf';
  // apt-get reads this file before the files of the machine, which may name a proxy, and again after them.
  writeFileSync(
    file('apt.conf'),
    [
      ...(existsSync(systemWide) ? [`#include "${systemWide}";`] : []),
      `Dir::Etc::main "${file('apt.conf')}";`,
      `Dir::Etc::SourceList "${file('sources.list')}";`,
      ...['SourceParts', 'PreferencesParts'].map((name) => `Dir::Etc::${name} "${file('none')}";`),
      'Dir::Etc::Preferences "/dev/null";',
      `Dir::State::Lists "${file('lists')}";`,
      `Dir::State::status "${file('status')}";`,
      `Dir::Cache "${file('cache')}";`,
      // Images of Debian delete the packages of the system's apt-get here, which runs at the same time.
      '#clear APT::Update::Post-Invoke;',
      '#clear APT::Update::Post-Invoke-Success;',
      'APT::Install-Recommends "false";',
      'APT::Update::Error-Mode "any";',
      ...['Acquire::AllowInsecureRepositories', 'APT::Get::AllowUnauthenticated'].map((name) => `${name} "false";`),
      // The folder may be closed to the user that root's apt-get downloads as.
      'APT::Sandbox::User "root";',
      'Acquire::Languages "none";',
      'Acquire::Retries "3";',
      'Debug::NoLocking "true";',
      '',
    ].join('\n'),
  );
  const env = { ...process.env, APT_CONFIG: file('apt.conf') };
  const failure = `Debian's package of Janus cannot be downloaded`;
  await run('apt-get', ['-qq', 'update'], { env, signal, failure });
  await run('apt-get', ['-qq', '-y', '--download-only', 'install', 'janus'], { env, signal, failure });
}

/** The mirror of Debian that this machine uses. */
function debianMirror() {
  const files = ['/etc/apt/sources.list', ...filesIn('/etc/apt/sources.list.d', /\.(list|sources)$/)];
  const text = files.flatMap((file) => (existsSync(file) ? readFileSync(file, 'utf8') : [])).join('\n');
  return /^[^#\n]*\b(https?:\/\/\S+\/debian\/?)(?=\s|$)/m.exec(text)?.[1] ?? 'http://deb.debian.org/debian';
}

/**
 * Puts a script in the place of the program that runs it with the unpacked libraries, which are newer than the machine's.
 * @param {string} usr
 */
function useOwnLibraries(usr) {
  const [linker] = filesIn(join(usr, 'lib'), /-linux-/).flatMap((libraries) => filesIn(libraries, /^ld-linux.*\.so\./));
  if (linker === undefined) throw new Failure(`Debian's packages contain no dynamic linker`);
  const program = programIn(dirname(usr));
  mkdirSync(join(usr, 'libexec'), { recursive: true });
  renameSync(program, join(usr, 'libexec', basename(program)));
  const libraries = `"$usr/${relative(usr, dirname(linker))}`;
  const script = `#!/bin/sh
usr=$(dirname "$(dirname "$(readlink -f "$0")")")
exec ${libraries}/${basename(linker)}" --argv0 janus --library-path ${libraries}" "$usr/libexec/janus" "$@"
`;
  writeFileSync(program, script, { mode: 0o755 });
}

/**
 * @param {string} folder
 * @param {RegExp} pattern
 */
function filesIn(folder, pattern) {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.filter((name) => pattern.test(name)).map((name) => join(folder, name));
}

/** @param {string} folder */
function programIn(folder) {
  return join(folder, 'usr', 'bin', 'janus');
}

/**
 * @param {string} program
 * @returns {Janus | undefined} undefined if the program does not run
 */
function withVersion(program) {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  const version = /^Janus version: .*\((\d+(?:\.\d+)*)\)/m.exec(stdout ?? '')?.[1];
  return version === undefined ? undefined : { program, version };
}
