import { MediaNodes, parseMediaNodes } from '@callplane/media';
import type { CleanupWorkerConfig } from '../config.js';

/**
 * Connects to every media server of the configuration; there may be none.
 * @throws Error that says what is wrong with the settings.
 */
export function openMediaNodes(
  config: Pick<CleanupWorkerConfig, 'MEDIA_NODES' | 'MEDIA_API_SECRET' | 'MEDIA_ADMIN_KEY'>,
  random: () => number,
): MediaNodes {
  const addresses = parseMediaNodes(config.MEDIA_NODES.join(','));
  const { MEDIA_API_SECRET: apiSecret, MEDIA_ADMIN_KEY: adminKey } = config;
  if (addresses.length === 0) return new MediaNodes([]);
  if (apiSecret === undefined || adminKey === undefined) {
    throw new Error('media servers need MEDIA_API_SECRET and MEDIA_ADMIN_KEY as well');
  }
  return MediaNodes.open({ addresses, apiSecret, adminKey, random });
}
