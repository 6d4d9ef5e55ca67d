import { Failure } from './failure.mjs';
import { ensurePrograms, installCommand } from './system-packages.mjs';

/**
 * The programs of the servers that the local start runs: those that no setting replaces.
 * @param {NodeJS.ProcessEnv} [env]
 */
export function startPrograms(env = process.env) {
  return [
    ...(env['REDIS_URL'] ? [] : ['redis-server']),
    ...(env['TURN_URLS'] ? [] : ['turnserver']),
    ...(env['MEDIA_NODES'] ? [] : ['janus']),
  ];
}

/**
 * Installs the missing programs of the local start where that is possible, and otherwise names the command that does.
 * Only Redis is required; the start goes on without coturn or Janus. Runs before the build, so that a user who has to
 * install something learns it within a second.
 * @param {{ say: (line: string) => void, step: import('./progress.mjs').Step, signal: AbortSignal }} context
 */
export async function ensureStartPrograms({ say, step, signal }) {
  const missing = await ensurePrograms(startPrograms(), { say, step, signal });
  if (missing.includes('redis-server')) {
    throw new Failure(
      `Redis is not installed. Run "${installCommand(missing)}", or set REDIS_URL to a Redis 6.2 or later; then start again`,
    );
  }
  const off = [
    ...(missing.includes('turnserver') ? ['coturn is not installed: STUN and TURN are off.'] : []),
    ...(missing.includes('janus') ? ['Janus is not installed: audio and video are off.'] : []),
  ];
  if (off.length > 0) say(`  ${off.join(' ')} To enable them: ${installCommand(missing)}`);
}
