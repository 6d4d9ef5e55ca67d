/**
 * The target of a request in the form that Express understands: a path that begins with a slash, with an optional
 * query. Express answers a target in which it finds no path with a page of its own, and skips every middleware: the
 * caller gets no error body, and the request has no log line and counts in no metric.
 */
export function originForm(target: string): string {
  const origin = target.startsWith('/') ? target : target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '');
  const path = origin.startsWith('/') ? origin : `/${origin}`;
  // A valid target has none of these characters. Express would give one that has them to Node's old parser of URLs,
  // which takes backslashes for slashes, and finds no path in some texts.
  return path.replace(/[\s#]/g, encodeURIComponent);
}
