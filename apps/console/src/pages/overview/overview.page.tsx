import type { Overview, UsageDay } from '@callplane/server/requests';
import { useMemo, type ReactNode } from 'react';
import { useApi } from '../../api/hooks.js';
import { BarChart, type Series } from '../../charts/bar-chart.js';
import { Page, Section } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';
import { Badge, Time } from '../../components/text.js';
import { countText, dayText, plural, shareText } from '../../format.js';
import { useMovingTime } from '../../moving-time.js';
import { Link } from '../../navigation/location.js';
import { useScope } from '../../session/session.js';

export default function OverviewPage() {
  const mayReadUsage = useScope('rooms:read');
  return (
    <Page title="Overview" subtitle="The present state of this environment, and its usage.">
      <Figures />
      {mayReadUsage && <UsageCharts />}
    </Page>
  );
}

const DAYS = 30;
const DAY_MS = 86_400_000;
/** The API adds up usage every few minutes, and the stream does not name it. */
const USAGE_MOVES_MS = 5 * 60_000;

function shownDays(nowMs: number): { from: string; to: string } {
  const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);
  return { from: dayOf(nowMs - (DAYS - 1) * DAY_MS), to: dayOf(nowMs) };
}

function UsageCharts() {
  const today = useMovingTime(DAY_MS);
  const days = useMemo(() => shownDays(today), [today]);
  const usage = useApi('readUsage', { ...days, interval: 'day' }, { everyMs: () => USAGE_MOVES_MS });
  return (
    <Section title={`Usage of the last ${DAYS} days`}>
      <Loaded query={usage} what="usage">
        {(data) => <Charts days={data.days} />}
      </Loaded>
    </Section>
  );
}

function Charts({ days }: { days: readonly UsageDay[] }) {
  const labels = days.map(({ day }) => dayText(day));
  const chart = (title: string, colour: Series['colour'], valueOf: (day: UsageDay) => number) => (
    <BarChart
      title={title}
      labels={labels}
      series={[{ name: title, colour, values: days.map(valueOf) }]}
      firstColumn="UTC day"
    />
  );
  const minutes = days.reduce((sum, { participantMinutes }) => sum + participantMinutes, 0);
  const relayed = Math.max(0, ...days.map(({ relayShare }) => relayShare ?? 0));
  return (
    <>
      <p className="quiet below">
        {plural(Math.round(minutes), 'participant minute')} in all.
        {relayed > 0 && ` On the day with the most relayed media, ${shareText(relayed)} of it went through a relay.`}
      </p>
      <div className="columns">
        {chart('Participant minutes', 1, ({ participantMinutes }) => participantMinutes)}
        {chart('Participants at the same time, at most', 4, ({ peakParticipants }) => peakParticipants)}
        {chart('Rooms', 2, ({ rooms }) => rooms)}
        {chart('Webhook deliveries', 1, ({ deliveries }) => deliveries)}
      </div>
    </>
  );
}

type Calls = NonNullable<Overview['calls']>;
type Webhooks = NonNullable<Overview['webhooks']>;

function Figures() {
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
              {calls !== null && (
                <BarChart
                  title="Joins in 5 minutes"
                  labels={timesOf(calls.joins.buckets)}
                  series={[{ name: 'Joins', colour: 1, values: calls.joins.buckets.map(({ count }) => count) }]}
                  firstColumn="From"
                />
              )}
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
  const { deliveries, oldestDueAt, failingEndpoints, failureRates, endpoints } = webhooks;
  const failing = failingEndpoints.length;
  const retried = failureRates.reduce((sum, { failed }) => sum + failed, 0) - deliveries.failed;
  return (
    <>
      <Tile
        name="Failed deliveries"
        value={countText(deliveries.failed)}
        note={`of the last hour; ${retried > 0 ? countText(retried) : 'none'} waiting for a retry`}
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
