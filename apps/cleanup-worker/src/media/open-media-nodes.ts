import { MediaNodes, parseMediaNodes } from '@callplane/media';
import type { CleanupWorkerConfig } from '../config.js';

/**
 * Connects to every configured media server. The list may be empty.
 * @throws Error that names the wrong or missing setting.
 */
export function openMediaNodes(
  config: Pick<CleanupWorkerConfig, 'MEDIA_NODES' | 'MEDIA_API_SECRET' | 'MEDIA_ADMIN_KEY'>,
  random: () => number,
): MediaNodes {
  const addresses = parseMediaNodes(config.MEDIA_NODES.join(','));
  const { MEDIA_API_SECRET: apiSecret, MEDIA_ADMIN_KEY: adminKey } = config;
  if (addresses.length === 0) return new MediaNodes([]);
  if (apiSecret === undefined || adminKey === undefined) {
    throw new Error('media servers require MEDIA_API_SECRET and MEDIA_ADMIN_KEY');
  }
  return MediaNodes.open({ addresses, apiSecret, adminKey, random });
}
