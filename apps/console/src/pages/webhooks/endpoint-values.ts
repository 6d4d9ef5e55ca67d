import type { InputOf } from '@callplane/server/requests';

/** The fields of an endpoint that its form changes, as the API takes them. */
export type EndpointFields = Required<
  Omit<InputOf<'updateWebhook'>, 'endpointId' | 'enabled' | 'projectId' | 'environmentId'>
>;

/** The default of each field. */
export const EMPTY: EndpointFields = {
  url: '',
  description: null,
  events: ['*'],
  ordering: 'none',
  maxPerSecond: null,
  maxConcurrent: null,
  standardWebhooks: false,
  retryRejected: false,
};

/** @returns the fields of `now` that differ from those of `before` */
export function differencesOf(before: EndpointFields, now: EndpointFields): Partial<EndpointFields> {
  const text = (value: unknown) => JSON.stringify(Array.isArray(value) ? [...(value as string[])].sort() : value);
  const names = Object.keys(EMPTY) as (keyof EndpointFields)[];
  return Object.fromEntries(
    names.filter((name) => text(now[name]) !== text(before[name])).map((name) => [name, now[name]]),
  );
}
