import type { WebhookEndpoint, WebhookRecovery } from '@callplane/server/requests';
import { useState } from 'react';
import { useApiList, useAskedAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Facts, RowList } from '../../components/layout.js';
import { Empty } from '../../components/states.js';
import { Badge, Time } from '../../components/text.js';
import { countText } from '../../format.js';
import { useScope } from '../../session/session.js';
import { RecoverDialog } from './recover-dialog.js';

const TONES = { pending: 'busy', completed: 'good', cancelled: 'quiet' } as const;

/** The recoveries of an endpoint with their progress, and the way to a new one. */
export function Recoveries({ endpoint }: { endpoint: WebhookEndpoint }) {
  const [isOpen, setOpen] = useState(false);
  const mayWrite = useScope('webhooks:write');
  return (
    <div className="stack">
      <div className="row spread">
        <p className="quiet">
          After an outage, a recovery sends all failed and waiting deliveries of a window at once, the oldest first.
        </p>
        {mayWrite && (
          <Button kind="primary" onClick={() => setOpen(true)}>
            Recover a window
          </Button>
        )}
      </div>
      <RowList
        list={useApiList('listRecoveries', { endpointId: endpoint.id })}
        what="the recoveries"
        empty={
          <Empty icon="refresh" title="This endpoint has had no recovery.">
            A recovery begins with a count that changes nothing.
          </Empty>
        }
        more="Show earlier recoveries"
        row={(recovery) => <Recovery recovery={recovery} />}
      />
      {isOpen && <RecoverDialog endpoint={endpoint} onClose={() => setOpen(false)} />}
    </div>
  );
}

function Recovery({ recovery }: { recovery: WebhookRecovery }) {
  const { since, until, dryRun, status, createdAt } = recovery;
  return (
    <div className="card stack">
      <div className="row">
        <strong>{dryRun ? 'Count' : 'Recovery'}</strong>
        <Badge tone={TONES[status]}>{status === 'pending' ? 'running' : status}</Badge>
        <span className="quiet">
          begun <Time value={createdAt} />
        </span>
        {status === 'pending' && <CancelRecovery recovery={recovery} />}
      </div>
      <p className="quiet">
        Deliveries from <Time value={since} full /> to <Time value={until} full />
      </p>
      <RecoveryFigures recovery={recovery} />
    </div>
  );
}

/** What a recovery has found and done so far. */
export function RecoveryFigures({ recovery }: { recovery: WebhookRecovery }) {
  const { matched, replayed, woken, skipped, dryRun, status } = recovery;
  if (dryRun && status === 'pending') return <p>Counting: {countText(matched)} so far.</p>;
  if (dryRun) return <p>{matched === 1 ? '1 delivery' : `${countText(matched)} deliveries`} would be sent again.</p>;
  return (
    <Facts
      facts={[
        ['Found', countText(matched)],
        ['Replayed', countText(replayed)],
        ['Brought forward', countText(woken)],
        ['Skipped', countText(skipped)],
      ]}
    />
  );
}

function CancelRecovery({ recovery }: { recovery: WebhookRecovery }) {
  const { id: recoveryId, endpointId } = recovery;
  const cancelling = useAskedAction('cancelRecovery', { done: 'The recovery is cancelled.' });
  const question = {
    title: 'Cancel the recovery?',
    body: <p>It sends no more deliveries. Those that it has begun are still sent.</p>,
    action: 'Cancel the recovery',
    isDangerous: true,
  };
  return (
    <Button isBusy={cancelling.isPending} onClick={() => cancelling.ask(question, { endpointId, recoveryId })}>
      Cancel it
    </Button>
  );
}
