import type { Overview } from '@callplane/server/requests';
import type { ReactNode } from 'react';
import { useApi } from '../../api/hooks.js';
import { BarChart } from '../../charts/bar-chart.js';
import { Section } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';
import { Badge, Time } from '../../components/text.js';
import { countText } from '../../format.js';
import { Link } from '../../navigation/location.js';

type Calls = NonNullable<Overview['calls']>;
type Webhooks = NonNullable<Overview['webhooks']>;

/** What is live, and the last hour. */
export function Figures() {
  const overview = useApi('readOverview', {});
  return (
    <Loaded query={overview} what="the figures">
      {({ calls, webhooks }) => (
        <>
          <div className="tiles">
            {calls !== null && <CallTiles calls={calls} />}
            {webhooks !== null && <WebhookTiles webhooks={webhooks} />}
          </div>
          {webhooks !== null && webhooks.failingEndpoints.length > 0 && <FailingEndpoints webhooks={webhooks} />}
          <Section title="The last hour">
            <div className="columns">
              {calls !== null && <Joins calls={calls} />}
              {webhooks !== null && <Deliveries webhooks={webhooks} />}
            </div>
          </Section>
        </>
      )}
    </Loaded>
  );
}

function Tile({
  name,
  value,
  note,
  to,
  tone,
}: {
  name: string;
  value: ReactNode;
  note: ReactNode;
  to?: string;
  tone?: 'warn' | 'bad' | undefined;
}) {
  const content = (
    <>
      <span className="label">{name}</span>
      <span className="tile-value">{value}</span>
      <span className="quiet small">{note}</span>
    </>
  );
  const className = `card tile${tone === undefined ? '' : ` ${tone}`}`;
  return to === undefined ? (
    <div className={className}>{content}</div>
  ) : (
    <Link to={to} className={className}>
      {content}
    </Link>
  );
}

/** A count that stops at a limit: "10,000+". */
const counted = ({ count, capped }: { count: number; capped: boolean }) => `${countText(count)}${capped ? '+' : ''}`;

function CallTiles({ calls }: { calls: Calls }) {
  return (
    <>
      <Tile name="Live rooms" value={counted(calls.activeRooms)} note="with a call now" to="/rooms?status=active" />
      <Tile name="Participants" value={counted(calls.participants)} note="in a call now" />
      <Tile name="Joins" value={counted(calls.joins)} note="in the last hour" />
    </>
  );
}

function WebhookTiles({ webhooks }: { webhooks: Webhooks }) {
  const { deliveries, oldestDueAt, failingEndpoints, endpoints } = webhooks;
  const failing = failingEndpoints.length;
  return (
    <>
      <Tile
        name="Failed deliveries"
        value={countText(deliveries.failed)}
        note="of the last hour"
        to="/deliveries?status=failed&period=1h"
        tone={deliveries.failed > 0 ? 'bad' : undefined}
      />
      <Tile
        name="Oldest due delivery"
        value={oldestDueAt === null ? 'None' : <Time value={oldestDueAt} />}
        note={oldestDueAt === null ? 'no delivery waits for a worker' : 'waits for a worker'}
      />
      <Tile
        name="Endpoints"
        value={countText(endpoints.enabled)}
        note={`${failing === 0 ? 'none' : countText(failing)} failing, ${countText(endpoints.disabled)} disabled`}
        to="/webhooks"
        tone={failing > 0 ? 'warn' : undefined}
      />
    </>
  );
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const timesOf = (buckets: readonly { from: string }[]) => buckets.map(({ from }) => clock.format(new Date(from)));

function Joins({ calls: { joins } }: { calls: Calls }) {
  return (
    <BarChart
      title="Joins in 5 minutes"
      labels={timesOf(joins.buckets)}
      series={[{ name: 'Joins', colour: 1, values: joins.buckets.map(({ count }) => count) }]}
      firstColumn="From"
    />
  );
}

function Deliveries({ webhooks: { deliveries } }: { webhooks: Webhooks }) {
  const { buckets } = deliveries;
  return (
    <BarChart
      title="Deliveries in 5 minutes, by outcome"
      labels={timesOf(buckets)}
      series={[
        { name: 'Succeeded', colour: 1, values: buckets.map(({ succeeded }) => succeeded) },
        { name: 'Open', colour: 2, values: buckets.map(({ pending, delivering }) => pending + delivering) },
        { name: 'Failed', colour: 3, values: buckets.map(({ failed }) => failed) },
      ]}
      firstColumn="From"
    />
  );
}

function FailingEndpoints({ webhooks: { failingEndpoints } }: { webhooks: Webhooks }) {
  return (
    <Section title="Failing endpoints">
      <ul className="card stack tight">
        {failingEndpoints.map(({ endpointId, url, failingSince, enabled }) => (
          <li key={endpointId} className="row spread">
            <Link to={`/webhooks/${endpointId}`}>{url}</Link>
            <span className="row">
              <span className="quiet">
                failing since <Time value={failingSince} />
              </span>
              {!enabled && <Badge tone="bad">disabled</Badge>}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
