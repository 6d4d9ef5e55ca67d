import { Page } from '../../components/layout.js';
import { useScope } from '../../session/session.js';
import { Figures } from './figures.js';
import { UsageCharts } from './usage-charts.js';

export default function OverviewPage() {
  const mayReadUsage = useScope('rooms:read');
  return (
    <Page title="Overview" subtitle="What happens in this environment now, and what it used.">
      <Figures />
      {mayReadUsage && <UsageCharts />}
    </Page>
  );
}
