import type { ApiError } from '../api/api-error.js';

/** What went wrong, with what support needs to find the request in the logs. */
export function ErrorText({ error }: { error: ApiError }) {
  // The message of an invalid request is its first detail.
  const details = error.details.filter(({ path, message }) => !error.message.startsWith(`${path} ${message}`));
  return (
    <>
      <p className="error-message">{error.message}</p>
      {details.length > 0 && (
        <ul className="error-details">
          {details.map(({ path, message }) => (
            <li key={path + message}>
              <code>{path}</code> {message}
            </li>
          ))}
        </ul>
      )}
      <p className="error-facts">
        <span>{error.code}</span>
        {error.status > 0 && <span>HTTP {error.status}</span>}
        {error.requestId !== undefined && <code>{error.requestId}</code>}
      </p>
    </>
  );
}
