import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import type { ApiList } from '../api/hooks.js';
import { countText } from '../format.js';
import { Link } from '../navigation/location.js';
import { Button } from './button.js';
import { Failure, Loading } from './states.js';

const ROW_PX = 48;
const OVERSCAN = 8;
/** From this width of the list on, columns of a priority are shown. */
const WIDTHS = { 2: 640, 3: 1_000 } as const;
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

interface ListProps<Item extends { id: string }> {
  label: string;
  list: ApiList<Item>;
  columns: readonly Column<Item>[];
  to?: ((item: Item) => string) | undefined;
}

/**
 * A list of the API as a table. Only rows in view exist, and further pages load as the reader scrolls. Arrow keys move
 * between the elements with the class `row-link`.
 * @param empty takes the place of a list without rows
 */
export function ListTable<Item extends { id: string }>({ empty, ...props }: ListProps<Item> & { empty: ReactNode }) {
  const { list, label } = props;
  const { items, error } = list;
  const showNewest = () => {
    window.scrollTo({ top: 0 });
    list.reload();
  };
  return (
    <div className="list">
      {/* A long list does not follow changes by itself. */}
      {list.isLong && (
        <div className="list-newest">
          <Button icon="refresh" onClick={showNewest}>
            Show the newest
          </Button>
        </div>
      )}
      {error !== null && <Failure error={error} onRetry={list.reload} />}
      {list.isLoading && error === null && <Loading what={label} lines={8} />}
      {!list.isLoading && items.length === 0 && error === null && empty}
      {items.length > 0 && <Table {...props} />}
      <p className="quiet list-end" role="status">
        {list.isLoadingMore && 'Loading more…'}
        {list.isFull && `The list ends after ${countText(items.length)} rows. Use a filter to reach the others.`}
      </p>
    </div>
  );
}

function Table<Item extends { id: string }>({ label, list, columns, to }: ListProps<Item>) {
  const { items, hasMore, loadMore } = list;
  const [frame, { width, top }] = usePlace();
  const virtualizer = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    scrollMargin: top,
    getItemKey: (index) => (items[index] as Item).id,
  });
  const rows = virtualizer.getVirtualItems();
  const lastShown = rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && lastShown >= items.length - AHEAD) loadMore();
  }, [hasMore, lastShown, items.length, loadMore]);
  const onKeyDown = useArrowKeys(items.length, (index) => virtualizer.scrollToIndex(index));
  const shown = columns.filter(({ priority = 1 }) => priority === 1 || width >= WIDTHS[priority]);
  const gridTemplateColumns = shown.map((column) => `minmax(0, ${column.width})`).join(' ');
  return (
    <div ref={frame} className="list-frame">
      <div role="table" aria-label={label} aria-rowcount={hasMore ? -1 : items.length + 1} onKeyDown={onKeyDown}>
        <div role="rowgroup" className="list-head">
          <div role="row" aria-rowindex={1} className="list-row label" style={{ gridTemplateColumns }}>
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
              style={{ gridTemplateColumns, transform: `translateY(${start - top}px)` }}
            >
              {shown.map(({ title, cell, align }, at) => (
                <div role="cell" key={title} className={`cut ${align ?? ''}`}>
                  <Cell content={cell(items[index] as Item)} to={at === 0 ? to?.(items[index] as Item) : undefined} />
                </div>
              ))}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

/** @param show brings a row into view, so that it exists */
function useArrowKeys(count: number, show: (index: number) => void) {
  return (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>('[data-index]') : null;
    if (step === undefined || row === null) return;
    const next = Number(row.dataset['index']) + step;
    if (next < 0 || next >= count) return;
    event.preventDefault();
    show(next);
    const table = event.currentTarget;
    requestAnimationFrame(() => table.querySelector<HTMLElement>(`[data-index="${next}"] .row-link`)?.focus());
  };
}

function Cell({ content, to }: { content: ReactNode; to: string | undefined }) {
  if (to === undefined) return content;
  return (
    <Link to={to} className="row-link">
      {content}
    </Link>
  );
}

/** The width of an element and its place in the document; both follow changes of the page. */
function usePlace() {
  const ref = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ width: 0, top: 0 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    const measure = () => {
      const { width, top } = element.getBoundingClientRect();
      const next = { width, top: Math.round(top + window.scrollY) };
      setPlace((last) => (last.width === next.width && last.top === next.top ? last : next));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    // Something above the list has grown or gone.
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  return [ref, place] as const;
}
