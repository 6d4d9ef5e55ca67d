import type { WebhookEndpoint } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { Check, FormEnd, InputField } from '../../components/fields.js';
import {
  changedMeanwhile,
  differencesOf,
  EMPTY,
  fieldsOf,
  valuesOf,
  type EndpointFields,
  type Values,
} from './endpoint-values.js';
import { EVENT_TEXTS } from './vocabulary.js';

/**
 * The fields of an endpoint, for a new one and for changes. A field that the user has not touched follows the endpoint.
 * @param onSubmit gets the fields that differ from the endpoint; all of a new one
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
  onSubmit: (changed: Partial<EndpointFields>, all: EndpointFields) => void;
  onClose: () => void;
}) {
  const current = endpoint === undefined ? EMPTY : valuesOf(endpoint);
  const [opened] = useState(() => fieldsOf(current));
  const [touched, setTouched] = useState<Partial<Values>>({});
  const set = (changes: Partial<Values>) => setTouched((before) => ({ ...before, ...changes }));
  const values = { ...current, ...touched };
  const [fields, changed] = [fieldsOf(values), differencesOf(fieldsOf(current), fieldsOf(values))];
  const news = changedMeanwhile(opened, fieldsOf(current), changed);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onSubmit(changed, fields);
  };
  return (
    <form className="form" onSubmit={submit}>
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
        value={values.description}
        onValue={(description) => set({ description })}
      />
      <EventFields values={values} set={set} />
      <SendingFields values={values} set={set} />
      {news !== undefined && (
        <p className="notice warn" role="status">
          {news}
        </p>
      )}
      <FormEnd error={error} action={action} isBusy={isBusy} onCancel={onClose} />
    </form>
  );
}

type Part = { values: Values; set: (changes: Partial<Values>) => void };

function EventFields({ values, set }: Part) {
  return (
    <fieldset className="fieldset">
      <legend>Events</legend>
      <Check
        label="All events"
        hint="Those of later versions included."
        checked={values.all}
        onChange={(event) => set({ all: event.target.checked })}
      />
      {!values.all && (
        <div className="event-checks">
          {EVENT_TEXTS.map(([type, text]) => (
            <Check
              key={type}
              label={type}
              hint={text}
              checked={values.events.includes(type)}
              onChange={({ target }) =>
                set({
                  events: target.checked ? [...values.events, type] : values.events.filter((each) => each !== type),
                })
              }
            />
          ))}
        </div>
      )}
    </fieldset>
  );
}

function SendingFields({ values, set }: Part) {
  return (
    <fieldset className="fieldset">
      <legend>Sending</legend>
      <Check
        label="Events of a room in their order"
        hint="The next event waits until the one before it has succeeded or failed for good. One event for each round trip."
        checked={values.inOrder}
        onChange={(event) => set({ inOrder: event.target.checked })}
      />
      <div className="field-pair">
        <InputField
          label="Attempts a second"
          hint="1 to 1,000; empty for no limit."
          type="number"
          min={1}
          max={1_000}
          value={values.maxPerSecond}
          onValue={(maxPerSecond) => set({ maxPerSecond })}
        />
        <InputField
          label="Attempts at once"
          hint="1 to 100; empty for no limit."
          type="number"
          min={1}
          max={100}
          value={values.maxConcurrent}
          onValue={(maxConcurrent) => set({ maxConcurrent })}
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
