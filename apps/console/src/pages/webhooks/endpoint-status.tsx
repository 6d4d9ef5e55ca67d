import type { WebhookEndpoint } from '@callplane/server/requests';
import { Badge } from '../../components/text.js';

export function EndpointStatus({ enabled, disabledReason }: Pick<WebhookEndpoint, 'enabled' | 'disabledReason'>) {
  if (enabled) return <Badge tone="good">enabled</Badge>;
  return <Badge tone={disabledReason === null ? 'quiet' : 'bad'}>disabled</Badge>;
}

/** Which events an endpoint gets, in a few words. */
export function eventsText(events: WebhookEndpoint['events']): string {
  if (events.includes('*')) return 'All events';
  return events.length <= 2 ? events.join(', ') : `${events.length} event types`;
}

/** The order and limits of an endpoint, in a few words. */
export function sendingText({ ordering, maxPerSecond, maxConcurrent }: WebhookEndpoint): string {
  const parts = [
    ...(ordering === 'room' ? ['in order of rooms'] : []),
    ...(maxPerSecond === null ? [] : [`${maxPerSecond} a second`]),
    ...(maxConcurrent === null ? [] : [`${maxConcurrent} at once`]),
  ];
  return parts.length === 0 ? 'No order, no limits' : parts.join(', ');
}
