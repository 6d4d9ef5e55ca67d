import type { WebhookEndpoint, WebhookRecovery } from '@callplane/server/requests';
import { useState, type ReactNode, type SubmitEvent } from 'react';
import { asApiError } from '../../api/api-error.js';
import { useApi, useApiAction, useApiList, useAskedAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Dialog } from '../../components/dialog.js';
import { Check, FormEnd, FormError, InputField } from '../../components/fields.js';
import { Facts, RowList } from '../../components/layout.js';
import { Empty, ErrorText } from '../../components/states.js';
import { Badge, Time } from '../../components/text.js';
import { countText } from '../../format.js';
import { nowMs } from '../../moving-time.js';
import { useScope } from '../../session/session.js';
import { isoOf } from './filter-of.js';

const TONES = { pending: 'busy', completed: 'good', cancelled: 'quiet' } as const;

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

function RecoveryFigures({ recovery }: { recovery: WebhookRecovery }) {
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
    body: <p>It starts no more deliveries. The deliveries that it has started are still sent.</p>,
    action: 'Cancel the recovery',
    isDangerous: true,
  };
  return (
    <Button isBusy={cancelling.isPending} onClick={() => cancelling.ask(question, { endpointId, recoveryId })}>
      Cancel it
    </Button>
  );
}

type Range = Pick<WebhookRecovery, 'since' | 'until' | 'includePending'>;

function RecoverDialog({ endpoint, onClose }: { endpoint: WebhookEndpoint; onClose: () => void }) {
  const [count, setCount] = useState<WebhookRecovery>();
  const [recovery, setRecovery] = useState<WebhookRecovery>();
  const counting = useApiAction('createRecovery', { onDone: setCount, isForm: true });
  const recovering = useApiAction('createRecovery', { onDone: setRecovery, isForm: true });
  const endpointId = endpoint.id;
  const begin = (range: Range) => {
    recovering.reset();
    counting.mutate({ endpointId, ...range, dryRun: true });
  };
  // The window stays as it was counted, also if its end was the present.
  const agree = (counted: WebhookRecovery) => {
    const { since, until, includePending } = counted;
    setCount(counted);
    recovering.mutate({ endpointId, since, until, includePending, dryRun: false });
  };
  return (
    <Dialog title="Recover a window" onClose={onClose}>
      {recovery !== undefined ? (
        <Progress begun={recovery} total={count?.matched ?? 0} onClose={onClose} />
      ) : count !== undefined ? (
        <Consent
          begun={count}
          endpoint={endpoint}
          isBusy={recovering.isPending}
          onBack={() => setCount(undefined)}
          onAgree={agree}
        />
      ) : (
        <WindowForm isBusy={counting.isPending} onSubmit={begin} onClose={onClose} />
      )}
      <FormError error={counting.error ?? recovering.error} />
    </Dialog>
  );
}

const HOUR_MS = 3_600_000;

/** @returns the value of a `datetime-local` field, in the zone of the reader */
function localTime(timeMs: number): string {
  const offsetMs = new Date(timeMs).getTimezoneOffset() * 60_000;
  return new Date(timeMs - offsetMs).toISOString().slice(0, 16);
}

function WindowForm({
  isBusy,
  onSubmit,
  onClose,
}: {
  isBusy: boolean;
  onSubmit: (range: Range) => void;
  onClose: () => void;
}) {
  const [since, setSince] = useState(() => localTime(nowMs() - HOUR_MS));
  const [until, setUntil] = useState('');
  const [includePending, setIncludePending] = useState(true);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const from = isoOf(since);
    if (from !== undefined)
      onSubmit({ since: from, until: isoOf(until) ?? new Date(nowMs()).toISOString(), includePending });
  };
  return (
    <form className="stack" onSubmit={submit}>
      <p className="quiet">Nothing is sent by this step: it counts the deliveries of the window.</p>
      <div className="fields">
        <InputField
          label="From"
          hint="When the outage began."
          type="datetime-local"
          required
          value={since}
          onValue={setSince}
        />
        <InputField label="To" hint="Empty: now." type="datetime-local" value={until} onValue={setUntil} />
      </div>
      <Check
        label="Waiting deliveries too"
        hint="Brings the next attempt of pending deliveries forward. It counts as one of their 8 attempts."
        checked={includePending}
        onChange={(event) => setIncludePending(event.target.checked)}
      />
      <FormEnd error={null} action="Count the deliveries" isBusy={isBusy} onCancel={onClose} />
    </form>
  );
}

function useRecovery(begun: WebhookRecovery): { recovery: WebhookRecovery; readError: ReactNode } {
  const { id: recoveryId, endpointId } = begun;
  const { data = begun, error } = useApi(
    'readRecovery',
    { endpointId, recoveryId },
    { everyMs: (answer = begun) => answer.status === 'pending' && 2_000 },
  );
  const readError = error !== null && data.status === 'pending' && (
    <div role="alert" className="form-error">
      <p>The figures may be outdated. The recovery itself continues, and the console reads it again every 2 seconds.</p>
      <ErrorText error={asApiError(error)} />
    </div>
  );
  return { recovery: data, readError };
}

function Consent({
  begun,
  endpoint,
  isBusy,
  onBack,
  onAgree,
}: {
  begun: WebhookRecovery;
  endpoint: WebhookEndpoint;
  isBusy: boolean;
  onBack: () => void;
  onAgree: (counted: WebhookRecovery) => void;
}) {
  const { recovery: count, readError } = useRecovery(begun);
  const { matched, includePending } = count;
  if (count.status === 'pending') {
    return (
      <>
        <p role="status">Counting: {countText(matched)} so far…</p>
        {readError}
      </>
    );
  }
  return (
    <div className="stack" role="status">
      <p className="count">
        <strong>{countText(matched)}</strong> {matched === 1 ? 'delivery' : 'deliveries'}
      </p>
      <p>
        from <Time value={count.since} full /> to <Time value={count.until} full />
      </p>
      {matched === 0 ? (
        <p>There is nothing to recover in this window.</p>
      ) : (
        <p className="notice warn">
          Callplane replays the failed ones {includePending && 'and brings the waiting ones forward '}to{' '}
          <strong>{endpoint.url}</strong>: at most 100 a second, the oldest first.
          {!endpoint.enabled && ' The endpoint is disabled, so that they wait until it is enabled.'}
        </p>
      )}
      <div className="row dialog-actions">
        <Button onClick={onBack}>Change the window</Button>
        {matched > 0 && (
          <Button kind="primary" isBusy={isBusy} onClick={() => onAgree(count)}>
            Send {matched === 1 ? 'it' : `all ${countText(matched)}`}
          </Button>
        )}
      </div>
    </div>
  );
}

function Progress({ begun, total, onClose }: { begun: WebhookRecovery; total: number; onClose: () => void }) {
  const { recovery, readError } = useRecovery(begun);
  const { status, replayed, woken, skipped, matched } = recovery;
  const done = replayed + woken + skipped;
  const whole = Math.max(total, matched, 1);
  return (
    <div className="stack">
      <p role="status">
        {status === 'pending'
          ? `${countText(done)} of ${countText(whole)} deliveries are on their way.`
          : status === 'completed'
            ? 'The recovery is complete. The list of deliveries shows the outcome of each.'
            : 'The recovery is cancelled.'}
      </p>
      <progress aria-label="Progress of the recovery" max={whole} value={status === 'completed' ? whole : done} />
      <RecoveryFigures recovery={recovery} />
      {readError}
      <div className="row dialog-actions">
        <Button kind="primary" onClick={onClose}>
          {status === 'pending' ? 'Continue in the background' : 'Done'}
        </Button>
      </div>
    </div>
  );
}
