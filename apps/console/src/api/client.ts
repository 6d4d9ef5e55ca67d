import { QueryClient } from '@tanstack/react-query';
import { CONSOLE_LIMITS } from '../limits.js';
import { asApiError } from './api-error.js';

/** The cache of all answers. The stream and timers mark entries as outdated, so their age decides little. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      gcTime: CONSOLE_LIMITS.cacheMs,
      retry: (count, error) => count < CONSOLE_LIMITS.retriesMax && asApiError(error).isTemporary,
      // The browser's own guess says nothing about an API in a closed network.
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});
