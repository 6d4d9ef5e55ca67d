import type { ReactNode } from 'react';
import { type ApiError, asApiError, shownAnswer } from '../api/api-error.js';
import { Button } from './button.js';
import { Icon, type IconName } from './icons.js';

/** The error, with the id by which support finds the request in the logs. */
export function ErrorText({ error }: { error: ApiError }) {
  // The message of an invalid request is its first detail.
  const details = error.details.filter(({ path, message }) => !error.message.startsWith(`${path} ${message}`));
  return (
    <>
      <p className="error-message">{error.message}</p>
      {details.length > 0 && (
        <ul className="small bullets">
          {details.map(({ path, message }) => (
            <li key={path + message}>
              <code>{path}</code> {message}
            </li>
          ))}
        </ul>
      )}
      <p className="row quiet small">
        <span>{error.code}</span>
        {error.status > 0 && <span>HTTP {error.status}</span>}
        {error.requestId !== undefined && <code>{error.requestId}</code>}
      </p>
    </>
  );
}

export function Loading({ what = 'this page', lines = 4 }: { what?: string | undefined; lines?: number }) {
  return (
    <div className="stack" role="status">
      <span className="visually-hidden">Loading {what}.</span>
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} className="bone" aria-hidden="true" />
      ))}
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ReactNode }) {
  return (
    <div className="stack empty">
      <Icon name={icon} />
      <strong>{title}</strong>
      {children !== undefined && <div className="quiet empty-text">{children}</div>}
    </div>
  );
}

export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <div className="failure" role="alert">
      <Icon name="warning" />
      <div className="stack tight">
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

export interface Query<Data> {
  data: Data | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

/** Shows a query in each of its states. Keeps the last answer on the page during an outage. */
export function Loaded<Data>({
  query,
  what,
  children,
}: {
  query: Query<Data>;
  what?: string;
  children: (data: Data) => ReactNode;
}) {
  const answer = shownAnswer(query);
  if (answer !== undefined) return children(answer);
  if (query.error !== null) return <Failure error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading what={what} />;
}
