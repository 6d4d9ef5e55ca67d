import type { Platform } from '../platform.js';

/**
 * Calls `listener` when this machine has lost its network, has one again or has another one.
 * @returns a function that ends this
 */
export function onNetworkChange(
  { page, network }: Pick<Platform, 'page' | 'network'>,
  listener: (isOnline: boolean) => void,
): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  page?.addEventListener('online', () => listener(true), { signal });
  page?.addEventListener('offline', () => listener(false), { signal });
  let type = network?.type;
  const onChange = () => {
    // The same event reports every new estimate of the bandwidth.
    if (network?.type === type) return;
    type = network?.type;
    listener(type !== 'none');
  };
  network?.addEventListener('change', onChange, { signal });
  return () => controller.abort();
}
