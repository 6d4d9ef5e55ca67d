import { OPERATIONS, type InputOf, type OperationId, type ResultOf } from '@callplane/server/requests';
import { useInfiniteQuery, useMutation, useQuery, useQueryClient, type InfiniteData } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import { confirm, type Question } from '../components/dialog.js';
import { toast, toastError } from '../components/toasts.js';
import { CONSOLE_LIMITS } from '../limits.js';
import { asApiError } from './api-error.js';
import { AttemptKey } from './attempt-key.js';
import { callApi } from './call.js';
import { isShort, refreshQuery } from './refresh.js';

/** Operations whose changes the stream does not report. An open page repeats them every few seconds. */
const POLLED: ReadonlySet<string> = new Set<OperationId>([
  ...(['readOverview', 'listWebhooks', 'readWebhook', 'listAllDeliveries', 'readDelivery'] as const),
  ...(['listAttempts', 'listRecoveries', 'listRecordings'] as const),
  // Mutes of the participants themselves have no event, and forwards of media neither.
  'listParticipants',
  'readRoomMedia',
]);
const { rereadEveryMs } = CONSOLE_LIMITS;

/** Reads one thing. The stream of changes or a timer refreshes it while the page is open. */
export function useApi<Id extends OperationId>(
  id: Id,
  input: InputOf<Id>,
  {
    enabled = true,
    everyMs = () => POLLED.has(id) && rereadEveryMs,
  }: { enabled?: boolean; everyMs?: (answer: ResultOf<Id> | undefined) => number | false } = {},
) {
  return useQuery({
    queryKey: [id, input],
    queryFn: ({ signal }) => callApi(id, input, { signal }),
    enabled,
    refetchInterval: ({ state }) => everyMs(state.data),
  });
}

type ItemOf<Id extends OperationId> = ResultOf<Id> extends { data: (infer Item)[] } ? Item : never;
interface Page {
  data: unknown[];
  nextCursor: string | null;
}

/** A list that loads further pages as the reader scrolls. */
export interface ApiList<Item> {
  items: Item[];
  isLoading: boolean;
  isLoadingMore: boolean;
  error: unknown;
  hasMore: boolean;
  /** The list has reached its bound: only a filter shows more. */
  isFull: boolean;
  /** The list does not read itself again, because the reader has scrolled far. */
  isLong: boolean;
  loadMore: () => void;
  reload: () => void;
}

export function useApiList<Id extends OperationId>(
  id: Id,
  input: Omit<InputOf<Id>, 'cursor' | 'after' | 'limit'>,
): ApiList<ItemOf<Id>> {
  const client = useQueryClient();
  const queryKey = useMemo(() => [id, input, 'list'], [id, JSON.stringify(input)]);
  const query = useInfiniteQuery<Page, Error, InfiniteData<Page>, unknown[], string | undefined>({
    queryKey,
    refetchInterval: (current) => POLLED.has(id) && isShort(current) && rereadEveryMs,
    refetchOnMount: isShort,
    refetchOnWindowFocus: isShort,
    refetchOnReconnect: isShort,
    initialPageParam: undefined,
    queryFn: async ({ pageParam, signal }) => {
      const { cursor = 'cursor' } = OPERATIONS[id];
      const position = pageParam === undefined ? {} : { [cursor]: pageParam };
      return (await callApi(id, { ...input, limit: CONSOLE_LIMITS.pageSize, ...position } as unknown as InputOf<Id>, {
        signal,
      })) as Page;
    },
    getNextPageParam: (last, pages) =>
      pages.length >= CONSOLE_LIMITS.pagesMax ? undefined : (last.nextCursor ?? undefined),
  });
  const pages = query.data?.pages;
  const items = useMemo(() => (pages ?? []).flatMap((page) => page.data) as ItemOf<Id>[], [pages]);
  const { hasNextPage, isFetching, fetchNextPage } = query;
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  const reload = useCallback(() => {
    client.setQueryData<InfiniteData<Page>>(queryKey, (data) =>
      data === undefined ? data : { pages: data.pages.slice(0, 1), pageParams: data.pageParams.slice(0, 1) },
    );
    void client.invalidateQueries({ queryKey, exact: true });
  }, [client, queryKey]);
  const last = pages?.at(-1);
  return {
    items,
    isLoading: query.isPending,
    isLoadingMore: query.isFetchingNextPage,
    error: query.error,
    hasMore: hasNextPage,
    isFull: !hasNextPage && last !== undefined && last.nextCursor !== null,
    isLong: (pages?.length ?? 0) > CONSOLE_LIMITS.rereadPagesMax,
    loadMore,
    reload,
  };
}

/**
 * Changes something. A failure appears as a toast.
 * @param options.done the toast after success
 * @param options.isForm a form shows the failure instead, as the `error` of the result
 */
export function useApiAction<Id extends OperationId>(
  id: Id,
  options: {
    done?: string | ((result: ResultOf<Id>) => string);
    onDone?: (result: ResultOf<Id>) => void;
    isForm?: boolean;
  } = {},
) {
  const client = useQueryClient();
  const [attempts] = useState(() => new AttemptKey());
  return useMutation({
    // Returns nothing: the cache of mutations would keep the answer, and with it a signing secret, for minutes.
    mutationFn: async (input: InputOf<Id>): Promise<void> => {
      const { done, onDone } = options;
      const result = await callApi(id, input, { idempotencyKey: attempts.keyFor(input) });
      attempts.succeeded();
      if (done !== undefined) toast(typeof done === 'string' ? done : done(result));
      onDone?.(result);
    },
    onError: (error) => {
      attempts.failed(error);
      if (options.isForm !== true) toastError(asApiError(error));
    },
    // Also after a failure, because another session may have made the change meanwhile.
    onSettled: () => {
      for (const query of client.getQueryCache().getAll()) refreshQuery(client, query);
    },
  });
}

/** Like {@link useApiAction}, for a change that the reader has to agree to. */
export function useAskedAction<Id extends OperationId>(
  id: Id,
  options: Parameters<typeof useApiAction<Id>>[1],
): { isPending: boolean; ask: (question: Question, input: InputOf<Id>) => void } {
  const { isPending, mutate } = useApiAction(id, options);
  return {
    isPending,
    ask: (question, input) =>
      void confirm(question).then((agrees) => {
        if (agrees) mutate(input);
      }),
  };
}
