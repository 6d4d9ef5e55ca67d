import { Failure } from './failure.mjs';
import { findJanus, JANUS_AT_LEAST } from './janus.mjs';
import { ensurePrograms, installCommand, mayInstall, missingPrograms } from './system-packages.mjs';

/**
 * The programs of the servers that the local start runs because no setting replaces them.
 * @param {NodeJS.ProcessEnv} [env]
 */
function startPrograms(env = process.env) {
  return [
    ...(env['REDIS_URL'] ? [] : ['redis-server']),
    ...(env['TURN_URLS'] ? [] : ['turnserver']),
    ...(env['MEDIA_NODES'] ? [] : ['janus']),
    'ffmpeg',
  ];
}

/**
 * Throws if the start cannot get Redis, the only program that it needs. Takes a few milliseconds: a user who has to
 * install something learns it before anything else happens.
 */
export function checkRedis() {
  const missing = missingPrograms(startPrograms());
  if (missing.includes('redis-server') && !mayInstall()) throw withoutRedis(missing);
}

/**
 * Installs the missing programs of the local start where that is possible, and otherwise prints instructions. Only
 * Redis is required; the start continues without coturn, Janus or ffmpeg.
 * @param {{ say: (line: string) => void, step: import('./progress.mjs').Step, signal: AbortSignal }} context
 */
export async function ensureStartPrograms({ say, step, signal }) {
  const missing = await ensurePrograms(startPrograms(), { say, step, signal });
  if (missing.includes('redis-server')) throw withoutRedis(missing);
  const older = missing.includes('janus') ? findJanus() : undefined;
  const off = [
    ...(missing.includes('turnserver') ? ['coturn is not installed: STUN and TURN are off.'] : []),
    ...(missing.includes('janus') && older === undefined ? ['There is no Janus: audio and video are off.'] : []),
    ...(missing.includes('ffmpeg') ? ['ffmpeg is not installed: recordings are off.'] : []),
    ...(older === undefined
      ? []
      : [
          `Janus ${older.version} (${older.program}) runs, for development only: before ${JANUS_AT_LEAST}, a participant can stop or crash it.`,
        ]),
  ];
  if (off.length > 0) say(`  ${off.join(' ')} To change that: ${installCommand(missing)}`);
}

/** @param {string[]} missing */
function withoutRedis(missing) {
  const command = installCommand(missing.filter((program) => program !== 'janus'));
  return new Failure(
    `Redis is not installed. Run "${command}", or set REDIS_URL to a Redis 6.2 or later; then start again`,
  );
}
