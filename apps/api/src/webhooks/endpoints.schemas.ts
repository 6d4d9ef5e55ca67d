import {
  ACTIVATE_IN_SECONDS_MAX,
  ALL_EVENTS,
  ENDPOINT_OPTIONS,
  EVENT_TYPES,
  SIGNATURE_CONTRACT,
  WEBHOOK_URL_CHARACTERS_MAX,
} from '@callplane/core';
import { Type, type TSchema } from 'typebox';
import {
  filterSchema,
  optionSchemas,
  namedObject,
  oneOf,
  orNull,
  pathId,
  timestamp,
  trimmedText,
} from '../http/schemas.js';

const DESCRIPTION_LENGTH_MAX = 500;

const EventNames = Type.Array(oneOf([ALL_EVENTS, ...EVENT_TYPES]), {
  minItems: 1,
  maxItems: EVENT_TYPES.length + 1,
  uniqueItems: true,
  description: 'Event types that the endpoint receives. `*` means all types, including types of later versions.',
});

const OPTIONS = optionSchemas(ENDPOINT_OPTIONS, { readsBounds: true });

const endpointFields = {
  id: Type.String({ description: 'Endpoint identifier, `whep_…`.' }),
  url: Type.String(),
  events: EventNames,
  description: orNull(Type.String()),
  enabled: Type.Boolean({ description: 'Deliveries are held back while the endpoint is disabled.' }),
  disabledReason: orNull(
    Type.String({
      description: 'Why the service disabled the endpoint. Null if the endpoint is enabled or you disabled it.',
    }),
  ),
  signingKeyVersion: Type.Integer({ description: 'Version of the secret that signs new runs.' }),
  nextSigningKeyVersion: orNull(
    Type.Integer({
      description: 'Version of the secret that signs new runs from `nextActivatesAt` on. Null unless a rotation waits.',
    }),
  ),
  nextActivatesAt: orNull(timestamp('When the next secret begins to sign new runs. Null unless a rotation waits.')),
  ...OPTIONS.read,
  failingSince: orNull(
    timestamp('Time of the first failed attempt since the last success. Null if the latest attempt succeeded.'),
  ),
  createdAt: timestamp('When the endpoint was registered.'),
  updatedAt: timestamp('When the endpoint was last changed through the API or disabled.'),
};

export const EndpointSchema = namedObject('WebhookEndpoint', endpointFields);

export const EndpointWithSecretSchema = namedObject('WebhookEndpointWithSecret', {
  ...endpointFields,
  signingSecret: Type.String({
    description:
      'Signing secret, `whsec_…`, of `nextSigningKeyVersion` or, if that is null, of `signingKeyVersion`. Reads do ' +
      'not return it.',
  }),
});

export const EndpointPath = Type.Object({
  endpointId: pathId('Endpoint identifier, returned when the endpoint was created.'),
});

const url = Type.String({
  'x-document': { format: 'uri', maxLength: WEBHOOK_URL_CHARACTERS_MAX },
  description:
    'Destination of deliveries: `https`, without user name or fragment, and with a public address only. At most 2048 ' +
    'characters. Stored in normalised form (`https://Example.com` becomes `https://example.com/`). A URL that a ' +
    'parser would have to repair is rejected.',
});
const enabled = (description: string) => Type.Boolean({ description });

export const CreateEndpointBody = namedObject('CreateWebhookEndpoint', {
  url,
  events: Type.Optional({ ...EventNames, default: [ALL_EVENTS] }),
  description: Type.Optional(trimmedText(DESCRIPTION_LENGTH_MAX, 'Free text for people.')),
  enabled: Type.Optional({ ...enabled('Whether the endpoint starts enabled.'), default: true }),
  ...OPTIONS.create,
});

export const UpdateEndpointBody = namedObject('UpdateWebhookEndpoint', {
  url: Type.Optional(url),
  events: Type.Optional(EventNames),
  description: Type.Optional(orNull(trimmedText(DESCRIPTION_LENGTH_MAX, 'Free text for people. Null removes it.'))),
  enabled: Type.Optional(enabled('`true` also clears `disabledReason` and sends the deliveries that were held back.')),
  ...OPTIONS.update,
});

export const TryFilterBody = namedObject('TryWebhookFilter', {
  eventId: pathId("Event in the key's environment, `evt_…`."),
  filter: Type.Optional({ ...filterSchema(), description: 'Default: the filter of the endpoint.' }),
});

export const TriedFilterSchema = namedObject('TriedWebhookFilter', {
  eventType: oneOf(EVENT_TYPES),
  subscribed: Type.Boolean({ description: 'Whether `events` of the endpoint has the type of the event.' }),
  matches: Type.Boolean({ description: 'Whether the event matches all paths of the filter.' }),
  paths: Type.Array(
    namedObject('TriedFilterPath', {
      path: Type.String(),
      value: Type.Unknown({ description: 'The value of the event at the path; null without one.' }),
      matches: Type.Boolean({ description: 'Whether it is one of the values of the filter.' }),
    }),
  ),
});

export const RotateSecretBody = namedObject('RotateWebhookSecret', {
  activateInSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: ACTIVATE_IN_SECONDS_MAX,
      default: 0,
      description: 'Seconds until the new secret signs new runs, so that the receiver can learn it before.',
    }),
  ),
});

/** Built from the constants of the contract, so that each field is documented with its value. */
export const SignatureContractSchema = namedObject(
  'SignatureContract',
  Object.fromEntries(
    Object.entries(SIGNATURE_CONTRACT).map(([name, value]): [string, TSchema] => [
      name,
      typeof value === 'object'
        ? Type.Array(Type.Integer(), { examples: [value] })
        : Type.Unsafe({ type: typeof value === 'number' ? 'integer' : 'string', const: value }),
    ]),
  ),
);
