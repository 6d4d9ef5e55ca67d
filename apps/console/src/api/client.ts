import { QueryClient } from '@tanstack/react-query';
import { asApiError } from './api-error.js';

const RETRIES = 2;

/** The cache of all answers. The stream marks entries as outdated, so their age decides little. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      gcTime: 5 * 60_000,
      retry: (count, error) => count < RETRIES && asApiError(error).isTemporary,
      // The browser's own guess says nothing about an API in a closed network.
      networkMode: 'always',
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});
