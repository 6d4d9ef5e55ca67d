import type { PageCursor } from './cursor.js';

export interface Page<Row> {
  rows: Row[];
  nextCursor: string | null;
}

/**
 * Cuts one page from rows that are ordered by id.
 * @param rows up to `limit + 1` rows; the extra row shows that another page follows.
 */
export function cutPage<Row extends { id: string }>(
  cursor: PageCursor<{ id: string }>,
  rows: readonly Row[],
  limit: number,
): Page<Row> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    rows: shown,
    nextCursor: rows.length > limit && last !== undefined ? cursor.encode({ id: last.id }) : null,
  };
}
