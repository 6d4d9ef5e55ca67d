/** The header objects of Node, Express, Fetch and most frameworks. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns all values of a header, so that the caller can reject repeated ones.
 * Node and Fetch join repeated headers with a comma. A comma is legal in no header of a delivery except for the one in
 * the signature format.
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
