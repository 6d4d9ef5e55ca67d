import type { InputOf, WebhookEndpoint } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { Check, FormEnd, InputField } from '../../components/fields.js';
import { changesOf } from '../changes-of.js';
import { EVENT_TEXTS, EVENT_TYPES, type EventType } from './vocabulary.js';

type EndpointFields = Required<
  Omit<InputOf<'updateWebhook'>, 'endpointId' | 'enabled' | 'projectId' | 'environmentId'>
>;

/** The default of each field. */
export const NEW_ENDPOINT: EndpointFields = {
  url: '',
  description: null,
  events: ['*'],
  ordering: 'none',
  maxPerSecond: null,
  maxConcurrent: null,
  standardWebhooks: false,
  retryRejected: false,
};

/**
 * The fields of an endpoint, for a new one and for changes. A field that the user has not touched follows the endpoint.
 * @param onSubmit gets the fields that differ from those of the endpoint, or from the defaults of a new one
 */
export function EndpointForm({
  endpoint,
  action,
  error,
  isBusy,
  onSubmit,
  onClose,
}: {
  endpoint?: WebhookEndpoint;
  action: string;
  error: unknown;
  isBusy: boolean;
  onSubmit: (changed: Partial<EndpointFields>) => void;
  onClose: () => void;
}) {
  const current: EndpointFields = endpoint ?? NEW_ENDPOINT;
  const [openedAt] = useState(endpoint?.updatedAt);
  const [touched, setTouched] = useState<Partial<EndpointFields>>({});
  const set = (changes: Partial<EndpointFields>) => setTouched((before) => ({ ...before, ...changes }));
  const values = { ...current, ...touched };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onSubmit(changesOf(current, touched));
  };
  return (
    <form className="stack" onSubmit={submit}>
      <InputField
        label="URL"
        hint="https, at a public address."
        type="url"
        required
        maxLength={2_048}
        autoComplete="off"
        placeholder="https://example.com/webhooks"
        value={values.url}
        onValue={(url) => set({ url })}
      />
      <InputField
        label="Description"
        hint="For people; may stay empty."
        maxLength={500}
        autoComplete="off"
        value={values.description ?? ''}
        onValue={(description) => set({ description: description === '' ? null : description })}
      />
      <EventFields values={values} set={set} />
      <SendingFields values={values} set={set} />
      {endpoint?.updatedAt !== openedAt && (
        <p className="notice warn" role="status">
          The endpoint has changed since you opened this form, which shows its new values. Saving changes only the
          fields that you have edited.
        </p>
      )}
      <FormEnd error={error} action={action} isBusy={isBusy} onCancel={onClose} />
    </form>
  );
}

type Part = { values: EndpointFields; set: (changes: Partial<EndpointFields>) => void };

function EventFields({ values: { events }, set }: Part) {
  const isAll = events.includes('*');
  const without = (type: EventType) => events.filter((each) => each !== type);
  return (
    <fieldset className="fieldset">
      <legend>Events</legend>
      <Check
        label="All events"
        hint="Those of later versions included."
        checked={isAll}
        onChange={({ target }) => set({ events: target.checked ? ['*'] : [] })}
      />
      {!isAll && (
        <div className="event-checks">
          {EVENT_TYPES.map((type) => (
            <Check
              key={type}
              label={type}
              hint={EVENT_TEXTS[type]}
              checked={events.includes(type)}
              onChange={({ target }) => set({ events: target.checked ? [...events, type] : without(type) })}
            />
          ))}
        </div>
      )}
    </fieldset>
  );
}

const limitOf = (text: string) => (text === '' ? null : Number(text));

function SendingFields({ values, set }: Part) {
  return (
    <fieldset className="fieldset">
      <legend>Sending</legend>
      <Check
        label="Events of a room in their order"
        hint="The next event waits until the one before it has succeeded or failed for good. One event for each round trip."
        checked={values.ordering === 'room'}
        onChange={({ target }) => set({ ordering: target.checked ? 'room' : 'none' })}
      />
      <div className="field-pair">
        <InputField
          label="Attempts a second"
          hint="1 to 1,000; empty for no limit."
          type="number"
          min={1}
          max={1_000}
          value={values.maxPerSecond ?? ''}
          onValue={(text) => set({ maxPerSecond: limitOf(text) })}
        />
        <InputField
          label="Attempts at once"
          hint="1 to 100; empty for no limit."
          type="number"
          min={1}
          max={100}
          value={values.maxConcurrent ?? ''}
          onValue={(text) => set({ maxConcurrent: limitOf(text) })}
        />
      </div>
      <Check
        label="Standard Webhooks headers"
        hint="Also sends webhook-id, webhook-timestamp and webhook-signature, for libraries of that specification."
        checked={values.standardWebhooks}
        onChange={(event) => set({ standardWebhooks: event.target.checked })}
      />
      <Check
        label="Retry rejected deliveries"
        hint="After a redirect or a 4xx answer that is final otherwise, such as 400, the delivery is tried again. 410 stays final."
        checked={values.retryRejected}
        onChange={(event) => set({ retryRejected: event.target.checked })}
      />
    </fieldset>
  );
}
