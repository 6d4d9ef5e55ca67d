import { type InfiniteData, type Query, QueryClient } from '@tanstack/react-query';
import { CONSOLE_LIMITS } from '../limits.js';
import { asApiError } from './api-error.js';

/** Whether an answer is no list, or a list of so few pages that it reads itself again. */
export function isShort({ state }: Pick<Query, 'state'>): boolean {
  const pages = (state.data as Partial<InfiniteData<unknown>> | undefined)?.pages?.length ?? 1;
  return pages <= CONSOLE_LIMITS.rereadPagesMax;
}

/** Reads a query again now if it is on the page, or when it is shown next. A long list only offers to be read again. */
export function refreshQuery(client: QueryClient, query: Query): void {
  const refetchType = isShort(query) ? 'active' : 'none';
  void client.invalidateQueries({ queryKey: query.queryKey, exact: true, refetchType }, { cancelRefetch: false });
}

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
