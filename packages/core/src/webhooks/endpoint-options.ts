import type { OptionTable, OptionValues } from '../options/option-table.js';

/** The options of a webhook endpoint, beside its URL, its events, its description and whether it is enabled. */
export const ENDPOINT_OPTIONS = {
  ordering: {
    column: 'ordering',
    type: 'choice',
    default: 'none',
    description:
      '`room`: the events of a room are sent one at a time, in their order. The next one waits until the one before it ' +
      'has succeeded or failed for good. `none`: nothing waits.',
    input: [
      'Order',
      'In order, the next event waits until the one before it has succeeded or failed for good: one event for each round trip.',
    ],
    label: 'Order',
    texts: { none: 'None: nothing waits', room: 'Events of a room in their order' },
  },
  maxPerSecond: {
    column: 'max_per_second',
    type: 'integer',
    min: 1,
    max: 1000,
    default: null,
    description: 'Maximum number of attempts that begin in a second, over all workers. Null for no limit.',
    input: ['Attempts a second', '1 to 1,000; empty for no limit.'],
    label: 'Attempts a second',
    none: 'No limit',
  },
  maxConcurrent: {
    column: 'max_concurrent',
    type: 'integer',
    min: 1,
    max: 100,
    default: null,
    description: 'Maximum number of attempts at once, over all workers. Null for no limit.',
    input: ['Attempts at once', '1 to 100; empty for no limit.'],
    label: 'Attempts at once',
    none: 'No limit',
  },
  standardWebhooks: {
    column: 'standard_webhooks',
    type: 'boolean',
    default: false,
    description:
      'Whether deliveries also carry the headers of the Standard Webhooks specification: `webhook-id`, ' +
      '`webhook-timestamp` and `webhook-signature`.',
    input: [
      'Standard Webhooks headers',
      'Also sends webhook-id, webhook-timestamp and webhook-signature, for libraries of that specification.',
    ],
    label: 'Standard Webhooks headers',
    texts: { true: 'Sent too', false: 'Not sent' },
  },
  retryRejected: {
    column: 'retry_rejected',
    type: 'boolean',
    default: false,
    description:
      'Whether deliveries that the receiver rejects, with a status that is final otherwise, are retried like after ' +
      '503. 410 stays final.',
    input: [
      'Retry rejected deliveries',
      'After a redirect or a 4xx answer that is final otherwise, such as 400, the delivery is tried again. 410 stays final.',
    ],
    label: 'Rejected deliveries',
    texts: { true: 'Tried again, except after 410', false: 'Fail at once' },
  },
  headers: {
    column: 'headers',
    type: 'headers',
    default: {},
    description: {
      read: 'Names of the headers that each attempt carries. All values are shown as `***`.',
      create:
        'Further headers of each attempt, such as `authorization`: at most 16. Values are stored encrypted. Headers of ' +
        'the service, of the connection and of the body are refused.',
      update: 'Replaces all further headers of each attempt.',
    },
    input: [
      'Headers',
      'One a line, such as “authorization: Bearer …”; at most 16. A change replaces all of them, so write their values again.',
    ],
    label: 'Headers',
    none: 'None',
  },
  filter: {
    column: 'filter',
    type: 'filter',
    default: null,
    description:
      'Only events whose `data` matches make deliveries: each path, such as `room.metadata.team`, has to have one of ' +
      'its values, or begin with `{ "prefix": … }`. An array matches with one of its elements. At most 8 paths of 8 ' +
      'values. Null: all events of the types in `events`.',
    input: [
      'Filter',
      'As JSON, such as {"room.metadata.team":["core"],"room.name":[{"prefix":"support-"}]}. Empty for all events.',
    ],
    label: 'Filter',
    none: 'None: all events of its types',
  },
} as const satisfies OptionTable;

export type EndpointOptions = OptionValues<typeof ENDPOINT_OPTIONS>;
