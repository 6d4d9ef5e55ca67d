import type { UsageDay } from '@callplane/server/requests';
import { useMemo } from 'react';
import { useApi } from '../../api/hooks.js';
import { BarChart, type Series } from '../../charts/bar-chart.js';
import { Page, Section } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';
import { dayText, plural, shareText } from '../../format.js';
import { useMovingTime } from '../../moving-time.js';
import { useScope } from '../../session/session.js';
import { Figures } from './figures.js';

export default function OverviewPage() {
  const mayReadUsage = useScope('rooms:read');
  return (
    <Page title="Overview" subtitle="What happens in this environment now, and what it used.">
      <Figures />
      {mayReadUsage && <UsageCharts />}
    </Page>
  );
}

const DAYS = 30;
const DAY_MS = 86_400_000;
/** The API adds up usage every few minutes, and the stream does not name it. */
const USAGE_MOVES_MS = 5 * 60_000;

/** @returns the first and the last of the days that the charts show */
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
