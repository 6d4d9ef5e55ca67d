import type { WebhookDeliveryDetail } from '@callplane/server/requests';
import { useApiList } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Failure, Loading } from '../../components/states.js';
import { Time } from '../../components/text.js';
import { Attempt, AttemptResult, attemptName } from './attempt.js';
import { millisecondsText } from './waterfall.js';

/** All attempts of a delivery, the latest first and open. */
export function Attempts({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { endpointId, id: deliveryId } = delivery;
  const list = useApiList('listAttempts', { endpointId, deliveryId });
  if (list.error !== null) return <Failure error={list.error} onRetry={list.reload} />;
  if (list.isLoading) return <Loading what="the attempts" />;
  if (list.items.length === 0) return <p className="quiet">There was no attempt yet.</p>;
  return (
    <div className="attempts">
      {list.items.map((attempt, at) => (
        <details key={attempt.id} className="card" open={at === 0}>
          <summary>
            <span className="attempt-name">{attemptName(attempt)}</span>
            <AttemptResult attempt={attempt} />
            <span className="quiet number">{millisecondsText(attempt.durationMs)}</span>
            <span className="quiet attempt-time">
              <Time value={attempt.startedAt} />
            </span>
          </summary>
          <Attempt
            attempt={attempt}
            deliveryUrl={delivery.url}
            isExplained={at === 0 && delivery.status !== 'succeeded'}
          />
        </details>
      ))}
      {list.hasMore && (
        <Button isBusy={list.isLoadingMore} onClick={list.loadMore}>
          Show earlier attempts
        </Button>
      )}
    </div>
  );
}
