import { useEffect, useRef, type ReactNode } from 'react';
import { shownAnswer } from '../api/api-error.js';
import type { ApiList } from '../api/hooks.js';
import { Link } from '../navigation/location.js';
import { Button } from './button.js';
import { Icon } from './icons.js';
import { Failure, Loaded, Loading, type Query } from './states.js';

interface Up {
  to: string;
  label: string;
}

/**
 * The frame of a page: its heading, where it belongs, and its actions. Names the document, and takes the focus after a
 * change of pages, so that a screen reader announces the page.
 */
export function Page({
  title,
  up,
  badge,
  subtitle,
  actions,
  children,
}: {
  title: string;
  up?: Up;
  badge?: ReactNode;
  subtitle?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Callplane console`;
  }, [title]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <>
      <header className="below">
        {up !== undefined && (
          <Link to={up.to} className="quiet page-up">
            <Icon name="back" />
            {up.label}
          </Link>
        )}
        <div className="row spread">
          <div className="page-title">
            <div className="row page-heading">
              <h1 ref={heading} tabIndex={-1}>
                {title}
              </h1>
              {badge}
            </div>
            {subtitle !== undefined && <div className="quiet">{subtitle}</div>}
          </div>
          {actions !== undefined && <div className="row page-actions">{actions}</div>}
        </div>
      </header>
      {children}
    </>
  );
}

/** A page about one thing, which has its frame also while the thing is read, or cannot be read. */
export function LoadedPage<Data>({
  query,
  title,
  up,
  children,
}: {
  query: Query<Data>;
  /** Of the page without an answer. */
  title: string;
  up: Up;
  children: (data: Data) => ReactNode;
}) {
  const answer = shownAnswer(query);
  if (answer !== undefined) return children(answer);
  return (
    <Page title={title} up={up}>
      <Loaded query={query}>{children}</Loaded>
    </Page>
  );
}

export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="section" aria-label={title}>
      <header className="row spread section-header">
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

/** Names and values of one thing. A fact without a value is left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="facts">
      {facts.map(
        ([name, value]) =>
          value !== false && (
            <div key={name}>
              <dt className="label">{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

/** A list of the API whose rows have their own shape, with a button for more of them. */
export function RowList<Item extends { id: string }>({
  list,
  what,
  empty,
  more,
  row,
}: {
  list: ApiList<Item>;
  what: string;
  empty: ReactNode;
  more: string;
  row: (item: Item, at: number) => ReactNode;
}) {
  if (list.error !== null) return <Failure error={list.error} onRetry={list.reload} />;
  if (list.isLoading) return <Loading what={what} />;
  if (list.items.length === 0) return empty;
  return (
    <div className="stack">
      <ul className="stack">
        {list.items.map((item, at) => (
          <li key={item.id}>{row(item, at)}</li>
        ))}
      </ul>
      {list.hasMore && (
        <Button isBusy={list.isLoadingMore} onClick={list.loadMore}>
          {more}
        </Button>
      )}
    </div>
  );
}

export function PlainTable({
  label,
  head,
  rows,
}: {
  label: string;
  head: readonly string[];
  rows: readonly { key: string; cells: readonly ReactNode[] }[];
}) {
  return (
    <div className="table-scroll" role="region" aria-label={label} tabIndex={0}>
      <table className="plain-table">
        <thead>
          <tr>
            {head.map((title) => (
              <th key={title} scope="col" className="label">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key}>
              {cells.map((cell, at) => (
                <td key={head[at]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
