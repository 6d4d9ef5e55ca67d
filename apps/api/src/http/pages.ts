import { encodeCursor } from './cursor.js';

export interface Page<Row> {
  rows: Row[];
  nextCursor: string | null;
}

/**
 * One page of a list that is ordered by id.
 * @param rows one more than the limit, when there are so many.
 */
export function cutPage<Row extends { id: string }>(list: string, rows: readonly Row[], limit: number): Page<Row> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    rows: shown,
    nextCursor: rows.length > limit && last !== undefined ? encodeCursor(list, [last.id]) : null,
  };
}
