/** A value that the event has to have, or the beginning of a text. */
export type FilterValue = string | number | boolean | null | { prefix: string };

/**
 * Which events an endpoint wants, by their `data`: each path has to have one of its values. PostgreSQL evaluates it
 * (`matchesFilter` of packages/db).
 */
export type WebhookFilter = Record<string, FilterValue[]>;
