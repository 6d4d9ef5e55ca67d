import type { ReactNode } from 'react';
import { asApiError } from '../api/api-error.js';
import { shownAnswer } from '../api/shown-answer.js';
import { Button } from './button.js';
import { ErrorText } from './error-text.js';
import { Icon, type IconName } from './icons.js';

/** Takes the place of something that the API has not answered yet. */
export function Loading({ what = 'this page', lines = 4 }: { what?: string; lines?: number }) {
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">Loading {what}.</span>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} className="bone" aria-hidden="true" />
      ))}
    </div>
  );
}

/** A list without rows: says why, and what fills it. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} />
      <p className="empty-title">{title}</p>
      {children !== undefined && <div className="empty-text">{children}</div>}
    </div>
  );
}

/** A part of a page that could not be loaded. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <div className="failure" role="alert">
      <Icon name="warning" />
      <div>
        <ErrorText error={asApiError(error)} />
        {onRetry !== undefined && (
          <Button icon="refresh" onClick={onRetry}>
            Try again
          </Button>
        )}
      </div>
    </div>
  );
}

interface Query<Data> {
  data: Data | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

/** Shows a query in each of its states. Keeps the last answer on the page during an outage. */
export function Loaded<Data>({
  query,
  what,
  lines,
  children,
}: {
  query: Query<Data>;
  what?: string;
  lines?: number;
  children: (data: Data) => ReactNode;
}) {
  const answer = shownAnswer(query);
  if (answer !== undefined) return children(answer);
  if (query.error !== null) return <Failure error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading {...(what === undefined ? {} : { what })} {...(lines === undefined ? {} : { lines })} />;
}
