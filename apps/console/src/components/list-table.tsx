import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import type { ApiList } from '../api/hooks.js';
import { Link } from '../navigation/link.js';
import { Button } from './button.js';
import { Failure, Loading } from './states.js';

const ROW_PX = 48;
const OVERSCAN = 8;
/** Loads the next page when fewer rows than this are left below. */
const AHEAD = 30;

export interface Column<Item> {
  title: string;
  cell: (item: Item) => ReactNode;
  /** A track of a CSS grid, such as `2fr` or `9rem`. */
  width: string;
  /** 1 is always shown, 2 from 640 px, 3 from 1000 px of the list's own width. */
  priority?: 1 | 2 | 3;
  align?: 'end';
}

/**
 * A list of the API as a table. Only rows in view exist, and further pages load as the reader scrolls. Arrow
 * keys move between rows.
 * @param to path of the page behind a row
 */
export function ListTable<Item>({
  label,
  list,
  columns,
  keyOf,
  to,
  empty,
}: {
  label: string;
  list: ApiList<Item>;
  columns: readonly Column<Item>[];
  keyOf: (item: Item) => string;
  to?: ((item: Item) => string) | undefined;
  empty: ReactNode;
}) {
  const { items, hasMore, isLoadingMore, loadMore } = list;
  const [body, width] = useWidth();
  const virtualizer = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    scrollMargin: body.current?.offsetTop ?? 0,
    getItemKey: (index) => keyOf(items[index] as Item),
  });
  const rows = virtualizer.getVirtualItems();
  const lastShown = rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= items.length - AHEAD) loadMore();
  }, [hasMore, lastShown, items.length, loadMore]);

  const shown = columns.filter(({ priority = 1 }) => priority === 1 || width >= (priority === 2 ? 640 : 1_000));
  const template = shown.map((column) => `minmax(0, ${column.width})`).join(' ');
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = (event.target as HTMLElement).closest<HTMLElement>('[data-index]');
    if (step === undefined || row === null) return;
    const next = Number(row.dataset['index']) + step;
    if (next < 0 || next >= items.length) return;
    event.preventDefault();
    virtualizer.scrollToIndex(next);
    const parent = event.currentTarget;
    requestAnimationFrame(() => parent.querySelector<HTMLElement>(`[data-index="${next}"] .row-link`)?.focus());
  };
  return (
    <div className="list">
      {list.hasNews && <NewsButton reload={list.reload} />}
      {list.error !== null && <Failure error={list.error} onRetry={list.reload} />}
      {list.isLoading && list.error === null && <Loading what={label} lines={8} />}
      {!list.isLoading && items.length === 0 && list.error === null && empty}
      <div ref={body} className="list-frame">
        {items.length > 0 && (
          <div
            role="table"
            aria-label={label}
            aria-rowcount={hasMore ? -1 : items.length + 1}
            onKeyDown={onKeyDown}
            className="list-table"
          >
            <div role="rowgroup" className="list-head">
              <div role="row" aria-rowindex={1} className="list-row" style={{ gridTemplateColumns: template }}>
                {shown.map(({ title, align }) => (
                  <div role="columnheader" key={title} className={align}>
                    {title}
                  </div>
                ))}
              </div>
            </div>
            <div role="rowgroup" className="list-rows" style={{ height: virtualizer.getTotalSize() }}>
              {rows.map(({ index, key, start }) => (
                <div
                  role="row"
                  key={key}
                  data-index={index}
                  aria-rowindex={index + 2}
                  className="list-row"
                  style={{
                    gridTemplateColumns: template,
                    transform: `translateY(${start - virtualizer.options.scrollMargin}px)`,
                  }}
                >
                  <Cells item={items[index] as Item} columns={shown} to={to} />
                </div>
              ))}
            </div>
          </div>
        )}
      </div>
      <p className="list-end" role="status">
        {isLoadingMore && 'Loading more…'}
        {list.isFull && `These are the newest ${items.length.toLocaleString('en')}. Use a filter to reach older ones.`}
      </p>
    </div>
  );
}

function Cells<Item>({
  item,
  columns,
  to,
}: {
  item: Item;
  columns: readonly Column<Item>[];
  to: ((item: Item) => string) | undefined;
}) {
  return columns.map(({ title, cell, align }, at) => (
    <div role="cell" key={title} className={`cell${align === undefined ? '' : ` ${align}`}`}>
      {at === 0 && to !== undefined ? (
        <Link to={to(item)} className="row-link">
          {cell(item)}
        </Link>
      ) : (
        cell(item)
      )}
    </div>
  ));
}

function NewsButton({ reload }: { reload: () => void }) {
  const show = () => {
    window.scrollTo({ top: 0 });
    reload();
  };
  return (
    <div className="list-news">
      <Button icon="refresh" onClick={show}>
        The list has changed: show
      </Button>
    </div>
  );
}

/** The width of an element, which follows its changes. */
function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width] as const;
}
