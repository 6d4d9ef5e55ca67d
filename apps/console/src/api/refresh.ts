import type { InfiniteData, Query, QueryClient } from '@tanstack/react-query';
import { CONSOLE_LIMITS } from '../limits.js';

/**
 * Reads matching queries again: those on the page now, others when they are shown next. A long list only becomes stale,
 * and offers to be read again.
 */
export function refreshQueries(client: QueryClient, matches: (query: Query) => boolean = () => true): void {
  for (const query of client.getQueryCache().findAll({ predicate: matches })) refreshQuery(client, query);
}

export function refreshQuery(client: QueryClient, query: Query): void {
  const pages = (query.state.data as Partial<InfiniteData<unknown>> | undefined)?.pages?.length ?? 1;
  const refetchType = pages <= CONSOLE_LIMITS.rereadPagesMax ? 'active' : 'none';
  void client.invalidateQueries({ queryKey: query.queryKey, exact: true, refetchType }, { cancelRefetch: false });
}
