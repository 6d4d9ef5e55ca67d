/** What Node, Express, Fetch and most frameworks call headers. */
export type WebhookHeaders =
  { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * All values of a header, so that the caller can refuse several. Node and Fetch join those with a comma, which no
 * header of a delivery may hold elsewhere than in the one place that its format says.
 * @param name in lower case.
 */
export function headerValues(headers: WebhookHeaders, name: string): string[] {
  if (isFetchHeaders(headers)) {
    const value = headers.get(name);
    return value === null ? [] : [value];
  }
  return Object.entries(headers)
    .filter(([key]) => key.toLowerCase() === name)
    .flatMap(([, value]) => value ?? []);
}

function isFetchHeaders(headers: WebhookHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}
