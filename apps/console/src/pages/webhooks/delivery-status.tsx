import type { WebhookDelivery } from '@callplane/server/requests';
import { Badge } from '../../components/text.js';
import { REASON_TEXTS, STATUS_TONES } from './vocabulary.js';

export function deliveryPath(endpointId: string, deliveryId: string): string {
  return `/webhooks/${endpointId}/deliveries/${deliveryId}`;
}

export function DeliveryStatus({ status }: Pick<WebhookDelivery, 'status'>) {
  return <Badge tone={STATUS_TONES[status]}>{status}</Badge>;
}

/** Why a delivery failed or what it waits for, in a few words for a list. */
export function DeliveryReason({ failureReason, blockedBy, attempts, status }: WebhookDelivery) {
  if (failureReason !== null) return REASON_TEXTS[failureReason];
  if (blockedBy !== null) return <span className="quiet">waits for an earlier one</span>;
  if (status === 'pending' && attempts > 0) return <span className="quiet">waits for a retry</span>;
  return <span className="quiet">–</span>;
}
