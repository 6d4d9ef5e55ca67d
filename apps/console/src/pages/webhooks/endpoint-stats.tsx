import { useApi } from '../../api/hooks.js';
import { BarChart } from '../../charts/bar-chart.js';
import { Facts } from '../../components/layout.js';
import { Loaded } from '../../components/states.js';

const EVERY_MS = 60_000;
const time = new Intl.DateTimeFormat('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' });
const duration = (ms: number | null) => (ms === null ? '–' : `${ms.toLocaleString('en')} ms`);

/** The attempts of the last 24 hours, by outcome and duration. */
export function EndpointStats({ endpointId }: { endpointId: string }) {
  const query = useApi('readWebhookStats', { endpointId }, { everyMs: () => EVERY_MS });
  return (
    <Loaded query={query} what="the statistics">
      {({ total, intervals }) => {
        const labels = intervals.map(({ start }) => time.format(new Date(start)));
        return (
          <div className="stack">
            <div className="card">
              <Facts
                facts={[
                  ['Attempts in 24 hours', total.attempts.toLocaleString('en')],
                  ['Successful', total.outcomes.success.toLocaleString('en')],
                  ['Half of them took at most', duration(total.p50Ms)],
                  ['95 % of them took at most', duration(total.p95Ms)],
                ]}
              />
            </div>
            <BarChart
              title="Attempts in an hour, by outcome"
              labels={labels}
              series={[
                { name: 'Success', colour: 1, values: intervals.map(({ outcomes }) => outcomes.success) },
                { name: 'Bad answer', colour: 2, values: intervals.map(({ outcomes }) => outcomes.response) },
                {
                  name: 'No answer',
                  colour: 3,
                  values: intervals.map(({ attempts, outcomes }) => attempts - outcomes.success - outcomes.response),
                },
              ]}
              firstColumn="From"
            />
            <BarChart
              title="Duration that 95 % of the attempts kept, in milliseconds"
              labels={labels}
              series={[{ name: 'Milliseconds', colour: 4, values: intervals.map(({ p95Ms }) => p95Ms ?? 0) }]}
              firstColumn="From"
            />
          </div>
        );
      }}
    </Loaded>
  );
}
