import type { WebhookEndpoint } from '@callplane/server/requests';
import { useMemo } from 'react';
import { useApi } from '../../api/hooks.js';
import { Badge } from '../../components/text.js';
import { countText, shareText } from '../../format.js';

export function EndpointStatus({ endpoint: { id, enabled, disabledReason } }: { endpoint: WebhookEndpoint }) {
  const { data } = useApi('readOverview', {});
  const isFailing = data?.webhooks?.failingEndpoints.some(({ endpointId }) => endpointId === id) ?? false;
  if (enabled && isFailing) return <Badge tone="warn">failing</Badge>;
  if (enabled) return <Badge tone="good">enabled</Badge>;
  return <Badge tone={disabledReason === null ? 'quiet' : 'bad'}>disabled</Badge>;
}

export function eventsText(events: WebhookEndpoint['events']): string {
  if (events.includes('*')) return 'All events';
  return events.length <= 2 ? events.join(', ') : `${events.length} event types`;
}

export function sendingText({ ordering, maxPerSecond, maxConcurrent }: WebhookEndpoint): string {
  const parts = [
    ...(ordering === 'room' ? ['in order of rooms'] : []),
    ...(maxPerSecond === null ? [] : [`${maxPerSecond} a second`]),
    ...(maxConcurrent === null ? [] : [`${maxConcurrent} at once`]),
  ];
  return parts.length === 0 ? 'No order, no limits' : parts.join(', ');
}

/** By endpoint id, in words: the share of deliveries of the last hour that failed at their latest attempt. */
export type FailureRates = ReadonlyMap<string, string>;

export function useFailureRates(): FailureRates {
  const { data } = useApi('readOverview', {});
  const rates = data?.webhooks?.failureRates;
  return useMemo(
    () =>
      new Map(
        rates?.map(({ endpointId, tried, failed }) => [
          endpointId,
          `${shareText(failed / tried)} of ${countText(tried)}`,
        ]),
      ),
    [rates],
  );
}
