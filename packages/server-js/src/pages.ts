import { CallplaneError } from './errors.js';

/** One page of a list, as the API returns it. */
export interface PageContent<Item> {
  data: Item[];
  nextCursor: string | null;
}

/** A list: resolves to its first page, and iterates over the items of this page and all further ones. */
export interface Page<Content, Item> extends Promise<Content>, AsyncIterable<Item> {}

/** @param load loads the page that begins at the cursor; undefined: the first page */
export function pageOf<Item>(
  operationId: string,
  load: (cursor: string | undefined) => Promise<PageContent<Item>>,
): Page<PageContent<Item>, Item> {
  const first = load(undefined);
  async function* items(): AsyncGenerator<Item, void, undefined> {
    let page = await first;
    for (;;) {
      yield* page.data;
      const cursor = page.nextCursor;
      if (cursor === null) return;
      page = await load(cursor);
      if (page.nextCursor === cursor) {
        const message = `${operationId}: the page after a cursor has the same cursor, so the list would not end.`;
        throw new CallplaneError(message, { code: 'INVALID_RESPONSE', operationId });
      }
    }
  }
  return Object.assign(first, { [Symbol.asyncIterator]: items });
}
