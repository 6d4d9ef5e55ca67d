import { Failure, type Step } from '../bootstrap.js';
import { ensurePrograms, installCommand } from '../system-packages/system-packages.js';
import type { Settings } from './settings.js';

export interface Programs {
  hasCoturn: boolean;
  hasJanus: boolean;
}

/**
 * Installs the programs of the servers that no setting replaces, where that is possible. Only Redis is required; the
 * start goes on without coturn or Janus.
 */
export async function startPrograms(
  settings: Settings,
  context: { say: (line: string) => void; step: Step; signal: AbortSignal },
): Promise<Programs> {
  const programs = [
    ...(settings.redisUrl === undefined ? ['redis-server'] : []),
    ...(settings.turnUrls === undefined ? ['turnserver'] : []),
    ...(settings.mediaNodes === undefined ? ['janus'] : []),
  ];
  const missing = await ensurePrograms(programs, context);
  if (missing.includes('redis-server')) {
    throw new Failure(
      `Redis is not installed. Run "${installCommand(missing)}", or set REDIS_URL to a Redis 6.2 or later; then start again`,
    );
  }
  if (missing.includes('turnserver')) {
    const command = installCommand(['turnserver']);
    context.say(`  coturn is not installed: STUN and TURN are off. To enable them: ${command}`);
  }
  if (missing.includes('janus')) {
    const command = installCommand(['janus']);
    context.say(`  Janus is not installed: audio and video are off. To enable them: ${command}`);
  }
  return { hasCoturn: !missing.includes('turnserver'), hasJanus: !missing.includes('janus') };
}
