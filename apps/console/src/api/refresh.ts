import type { InfiniteData, Query, QueryClient } from '@tanstack/react-query';
import { CONSOLE_LIMITS } from '../limits.js';

/**
 * Reads matching queries again: those on the page now, others when they are shown next. A long list only becomes stale,
 * and offers to be read again.
 */
export function refreshQueries(client: QueryClient, matches: (query: Query) => boolean = () => true): void {
  for (const query of client.getQueryCache().findAll({ predicate: matches })) refreshQuery(client, query);
}

/** Whether an answer is no list, or a list of so few pages that it reads itself again. */
export function isShort({ state }: Pick<Query, 'state'>): boolean {
  const pages = (state.data as Partial<InfiniteData<unknown>> | undefined)?.pages?.length ?? 1;
  return pages <= CONSOLE_LIMITS.rereadPagesMax;
}

export function refreshQuery(client: QueryClient, query: Query): void {
  const refetchType = isShort(query) ? 'active' : 'none';
  void client.invalidateQueries({ queryKey: query.queryKey, exact: true, refetchType }, { cancelRefetch: false });
}
