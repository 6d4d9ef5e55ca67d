import { ALL_EVENTS, EVENT_TYPES } from '@callplane/core';
import { Type } from 'typebox';
import { oneOf, orNull, page, pageQuery, pathId, strictObject, timestamp, trimmedText } from '../http/schemas.js';
import { TenantQuery } from './tenant-query.js';

const DESCRIPTION_LENGTH_MAX = 500;

const EventNames = Type.Array(oneOf([ALL_EVENTS, ...EVENT_TYPES]), {
  minItems: 1,
  uniqueItems: true,
  description: 'Types of events that it gets; `*` stands for all of them, those of later versions too.',
});

const endpointFields = {
  id: Type.String({ description: 'Endpoint identifier, `whep_…`.' }),
  url: Type.String(),
  events: EventNames,
  description: orNull(Type.String()),
  enabled: Type.Boolean({ description: 'While it is disabled, its deliveries are held back.' }),
  disabledReason: orNull(
    Type.String({ description: 'Why we disabled it; null when it is enabled, or when you disabled it.' }),
  ),
  signingKeyVersion: Type.Integer({ description: 'Version of the secret that new runs are signed with.' }),
  createdAt: timestamp('When the endpoint was registered.'),
  updatedAt: timestamp('When it was last changed through the API, or disabled.'),
};

export const EndpointSchema = Type.Object(endpointFields, { title: 'WebhookEndpoint', additionalProperties: false });

export const EndpointWithSecretSchema = Type.Object(
  {
    ...endpointFields,
    signingSecret: Type.String({ description: '`whsec_…`. Shown here and never again.' }),
  },
  { title: 'WebhookEndpointWithSecret', additionalProperties: false },
);

export const EndpointPath = Type.Object({ endpointId: pathId('Returned when the endpoint was created.') });

const url = Type.String({
  description:
    'Where deliveries go: `https`, no user name, and no address that is not public. At most 2048 characters. Kept in ' +
    'its normal form (`https://Example.com` becomes `https://example.com/`).',
});
const enabled = (description: string) => Type.Boolean({ description });

export const CreateEndpointBody = strictObject(
  {
    url,
    events: Type.Optional({ ...EventNames, default: [ALL_EVENTS] }),
    description: Type.Optional(trimmedText(DESCRIPTION_LENGTH_MAX, 'For people.')),
    enabled: Type.Optional({ ...enabled('Whether it gets its deliveries at once.'), default: true }),
  },
  { title: 'CreateWebhookEndpoint' },
);

export const UpdateEndpointBody = strictObject(
  {
    url: Type.Optional(url),
    events: Type.Optional(EventNames),
    description: Type.Optional(orNull(trimmedText(DESCRIPTION_LENGTH_MAX, 'For people; null removes it.'))),
    enabled: Type.Optional(enabled('`true` also clears `disabledReason` and sends what was held back.')),
  },
  { title: 'UpdateWebhookEndpoint' },
);

export const ListEndpointsQuery = Type.Object({ ...TenantQuery.properties, ...pageQuery('webhooks') });

export const EndpointPage = page('WebhookEndpointPage', EndpointSchema);
