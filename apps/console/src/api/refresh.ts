import type { InfiniteData, Query, QueryClient } from '@tanstack/react-query';

/** Lists of at most so many pages are read again when something in them changes. A longer one offers to. */
export const REREAD_PAGES_MAX = 2;

/** Reads matching queries again: those on the page now, others when they are shown next. */
export function refreshQueries(client: QueryClient, matches: (query: Query) => boolean = () => true): void {
  for (const query of client.getQueryCache().findAll({ predicate: matches })) refreshQuery(client, query);
}

export function refreshQuery(client: QueryClient, query: Query): void {
  const pages = (query.state.data as Partial<InfiniteData<unknown>> | undefined)?.pages?.length ?? 1;
  const refetchType = pages <= REREAD_PAGES_MAX ? 'active' : 'none';
  void client.invalidateQueries({ queryKey: query.queryKey, exact: true, refetchType }, { cancelRefetch: false });
}
