import type { InputOf, WebhookEndpoint } from '@callplane/server/requests';
import type { EventType } from './vocabulary.js';

/** What the form of an endpoint shows. */
export interface Values {
  url: string;
  description: string;
  all: boolean;
  events: readonly EventType[];
  inOrder: boolean;
  maxPerSecond: string;
  maxConcurrent: string;
  standardWebhooks: boolean;
  retryRejected: boolean;
}

export const EMPTY: Values = {
  url: '',
  description: '',
  all: true,
  events: [],
  inOrder: false,
  maxPerSecond: '',
  maxConcurrent: '',
  standardWebhooks: false,
  retryRejected: false,
};

export function valuesOf(endpoint: WebhookEndpoint): Values {
  return {
    url: endpoint.url,
    description: endpoint.description ?? '',
    all: endpoint.events.includes('*'),
    events: endpoint.events.filter((event): event is EventType => event !== '*'),
    inOrder: endpoint.ordering === 'room',
    maxPerSecond: endpoint.maxPerSecond?.toString() ?? '',
    maxConcurrent: endpoint.maxConcurrent?.toString() ?? '',
    standardWebhooks: endpoint.standardWebhooks,
    retryRejected: endpoint.retryRejected,
  };
}

export type EndpointFields = Required<
  Omit<InputOf<'createWebhook'>, 'enabled' | 'projectId' | 'environmentId' | 'description'>
> & {
  description: string | null;
};

/** The fields of the API that the values of the form stand for. */
export function fieldsOf(values: Values): EndpointFields {
  const limit = (text: string): number | null => (text.trim() === '' ? null : Number(text));
  const description = values.description.trim();
  return {
    url: values.url.trim(),
    description: description === '' ? null : description,
    events: values.all ? ['*'] : [...values.events],
    ordering: values.inOrder ? 'room' : 'none',
    maxPerSecond: limit(values.maxPerSecond),
    maxConcurrent: limit(values.maxConcurrent),
    standardWebhooks: values.standardWebhooks,
    retryRejected: values.retryRejected,
  };
}

const NAMES: Record<keyof EndpointFields, string> = {
  url: 'URL',
  description: 'Description',
  events: 'Events',
  ordering: 'Order',
  maxPerSecond: 'Attempts a second',
  maxConcurrent: 'Attempts at once',
  standardWebhooks: 'Standard Webhooks headers',
  retryRejected: 'Rejected deliveries',
};

/** @returns the fields of `now` that differ from those of `before` */
export function differencesOf(before: EndpointFields, now: EndpointFields): Partial<EndpointFields> {
  const text = (value: unknown) => JSON.stringify(Array.isArray(value) ? [...(value as string[])].sort() : value);
  return Object.fromEntries(
    Object.entries(now).filter(([name, value]) => text(value) !== text(before[name as keyof EndpointFields])),
  );
}

/** @returns what to say when the endpoint has changed since the form was opened; undefined while it has not */
export function changedMeanwhile(
  opened: EndpointFields,
  current: EndpointFields,
  edited: Partial<EndpointFields>,
): string | undefined {
  const names = Object.keys(differencesOf(opened, current)) as (keyof EndpointFields)[];
  if (names.length === 0) return undefined;
  const list = (some: typeof names) => some.map((name) => NAMES[name]).join(', ');
  const replaced = names.filter((name) => name in edited);
  const start = `The endpoint has changed since you opened this form: ${list(names)}.`;
  return replaced.length === 0
    ? `${start} The form shows the new values, and saves only what you change.`
    : `${start} Saving replaces the new value of: ${list(replaced)}.`;
}
