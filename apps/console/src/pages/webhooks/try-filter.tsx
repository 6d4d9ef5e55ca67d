import type { WebhookEndpoint } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { useApi } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { InputField } from '../../components/fields.js';
import { PlainTable, Section } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';
import { Badge } from '../../components/text.js';

/** Tries the filter of an endpoint on a past event. */
export function TryFilter({ endpoint }: { endpoint: WebhookEndpoint }) {
  const [typed, setTyped] = useState('');
  const [eventId, setEventId] = useState('');
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setEventId(typed.trim());
  };
  return (
    <Section title="Would this event be delivered?">
      <form className="stack below" onSubmit={submit}>
        <InputField
          label="Event"
          hint="The identifier of a past event. The event is not sent."
          required
          pattern="[A-Za-z0-9_\-]{1,128}"
          placeholder="evt_…"
          value={typed}
          onValue={setTyped}
        />
        <div className="row">
          <Button type="submit">Try the filter</Button>
        </div>
      </form>
      {eventId !== '' && <Result endpointId={endpoint.id} eventId={eventId} />}
    </Section>
  );
}

function Result(input: { endpointId: string; eventId: string }) {
  return (
    <Loaded query={useApi('tryWebhookFilter', input)} what="the result">
      {({ eventType, subscribed, matches, paths }) => (
        <>
          <p className="below" role="status">
            <Verdict isGood={subscribed && matches} yes="Delivered" no="Not delivered" /> <code>{eventType}</code> is{' '}
            {subscribed ? '' : 'not '}among the events of this endpoint, and {matches ? 'matches' : 'does not match'}{' '}
            its filter.
          </p>
          {paths.length > 0 && (
            <PlainTable
              label="Paths of the filter"
              head={['Path', 'Value of the event', 'State']}
              rows={paths.map(({ path, value, matches: isMatch }) => ({
                key: path,
                cells: [
                  <code>{path}</code>,
                  <code>{JSON.stringify(value)}</code>,
                  <Verdict isGood={isMatch} yes="matches" no="does not match" />,
                ],
              }))}
            />
          )}
        </>
      )}
    </Loaded>
  );
}

function Verdict({ isGood, yes, no }: { isGood: boolean; yes: string; no: string }) {
  return <Badge tone={isGood ? 'good' : 'quiet'}>{isGood ? yes : no}</Badge>;
}
