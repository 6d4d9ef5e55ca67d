import { ENDPOINT_OPTIONS, EVENT_TEXTS, EVENT_TYPES, optionDefaults, type EventType } from '@callplane/core/options';
import type { InputOf, WebhookEndpoint, WebhookEndpointWithSecret } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { Check, FormEnd, InputField } from '../../components/fields.js';
import { OptionFields } from '../../components/options.js';
import { navigate } from '../../navigation/location.js';
import { changesOf } from '../changes-of.js';
import { SecretDialog } from './rotate-secret.js';

type EndpointFields = Required<
  Omit<InputOf<'updateWebhook'>, 'endpointId' | 'enabled' | 'projectId' | 'environmentId'>
>;

const NEW_ENDPOINT: EndpointFields = {
  url: '',
  description: null,
  events: ['*'],
  ...optionDefaults(ENDPOINT_OPTIONS),
};

/** Registers an endpoint and shows its secret once, or changes one. A field that is not edited follows the endpoint. */
export function EndpointForm({ endpoint, onClose }: { endpoint?: WebhookEndpoint; onClose: () => void }) {
  const current: EndpointFields = endpoint ?? NEW_ENDPOINT;
  const [openedAt] = useState(endpoint?.updatedAt);
  const [edited, setEdited] = useState<Partial<EndpointFields>>({});
  const [made, setMade] = useState<WebhookEndpointWithSecret>();
  const create = useApiAction('createWebhook', { onDone: setMade, isForm: true });
  const update = useApiAction('updateWebhook', {
    done: 'The endpoint has been changed.',
    onDone: onClose,
    isForm: true,
  });
  const { error, isPending } = endpoint === undefined ? create : update;
  const values = { ...current, ...edited };
  const part = {
    values,
    set: (changes: Partial<EndpointFields>) => setEdited((before) => ({ ...before, ...changes })),
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const changed = changesOf(current, edited);
    const { description, ...others } = values;
    if (endpoint === undefined) create.mutate({ ...others, ...(description === null ? {} : { description }) });
    else if (Object.keys(changed).length === 0) onClose();
    else update.mutate({ endpointId: endpoint.id, ...changed });
  };
  // While the request runs, the form stays: the secret in its answer is shown once.
  const close = () => {
    if (!create.isPending) onClose();
  };
  if (made !== undefined) {
    return <SecretDialog endpoint={made} onClose={() => navigate(`/webhooks/${made.id}`)} />;
  }
  return (
    <Dialog title={endpoint === undefined ? 'Add an endpoint' : 'Edit the endpoint'} onClose={close}>
      <form className="stack" onSubmit={submit}>
        <p className="quiet">{endpoint === undefined ? NEW_TEXT : EDIT_TEXT}</p>
        <NameFields {...part} />
        <EventFields {...part} />
        <fieldset className="fieldset">
          <legend>Sending</legend>
          <OptionFields table={ENDPOINT_OPTIONS} isNew={endpoint === undefined} {...part} />
        </fieldset>
        {endpoint?.updatedAt !== openedAt && (
          <p className="notice warn" role="status">
            The endpoint has changed since you opened this form, which shows its new values. Saving changes only the
            fields that you have edited.
          </p>
        )}
        <FormEnd
          error={error}
          action={endpoint === undefined ? 'Add the endpoint' : 'Save the changes'}
          isBusy={isPending}
          onCancel={close}
        />
      </form>
    </Dialog>
  );
}

const NEW_TEXT =
  'The endpoint receives the events of this environment that happen from now on. Its signing secret is shown once, after this step.';
const EDIT_TEXT =
  'A new URL applies to runs that begin later. Order, limits, headers and retries apply to attempts that begin later.';

type Part = { values: EndpointFields; set: (changes: Partial<EndpointFields>) => void };

function NameFields({ values, set }: Part) {
  return (
    <>
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
    </>
  );
}

function EventFields({ values: { events }, set }: Part) {
  const isAll = events.includes('*');
  const without = (type: EventType) => events.filter((each) => each !== type);
  return (
    <fieldset className="fieldset">
      <legend>Events</legend>
      <Check
        label="All events"
        hint="Includes types of later versions."
        checked={isAll}
        onChange={({ target }) => set({ events: target.checked ? ['*'] : [] })}
      />
      {!isAll && (
        <div className="fields">
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
