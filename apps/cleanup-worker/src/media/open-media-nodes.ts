import { listRegisteredNodes, type Database } from '@callplane/db';
import { MediaNodes, parseMediaNodes } from '@callplane/media';
import type { CleanupWorkerConfig } from '../config.js';

/**
 * Connects to every configured media server. Registered ones follow with the first `refresh`, if the secrets are set.
 * @throws Error that names the wrong or missing setting.
 */
export function openMediaNodes(
  config: Pick<CleanupWorkerConfig, 'MEDIA_NODES' | 'MEDIA_API_SECRET' | 'MEDIA_ADMIN_KEY'>,
  database: Database,
  random: () => number,
): MediaNodes {
  const addresses = parseMediaNodes(config.MEDIA_NODES.join(','));
  const { MEDIA_API_SECRET: apiSecret, MEDIA_ADMIN_KEY: adminKey } = config;
  if (apiSecret === undefined || adminKey === undefined) {
    if (addresses.length > 0) throw new Error('media servers require MEDIA_API_SECRET and MEDIA_ADMIN_KEY');
    return new MediaNodes([]);
  }
  const readRegistry = () => listRegisteredNodes(database.prisma);
  return MediaNodes.open({ addresses, apiSecret, adminKey, random, readRegistry });
}
