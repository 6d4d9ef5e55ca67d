import type { WebhookAttempt, WebhookDeliveryDetail } from '@callplane/server/requests';
import { useApiList } from '../../api/hooks.js';
import { Facts, RowList } from '../../components/layout.js';
import { Badge, Code, Time } from '../../components/text.js';

function AttemptResult({ outcome, statusCode, errorCode }: WebhookAttempt) {
  const text = statusCode === null ? (errorCode ?? outcome) : `HTTP ${statusCode}`;
  return <Badge tone={outcome === 'success' ? 'good' : 'bad'}>{text}</Badge>;
}

/** Run and number of an attempt: "Attempt 2", "Replay 1, attempt 2". */
function attemptName({ replayCount, attempt }: WebhookAttempt): string {
  return replayCount === 0 ? `Attempt ${attempt}` : `Replay ${replayCount}, attempt ${attempt}`;
}

/** Omits the URL of the current run and the diagnosis of the latest attempt, which the page shows elsewhere. */
function Attempt({ attempt, at, delivery }: { attempt: WebhookAttempt; at: number; delivery: WebhookDeliveryDetail }) {
  const { diagnosis, earlierAddresses, url, errorCode, statusCode } = attempt;
  const isExplained = at === 0 && delivery.status !== 'succeeded';
  return (
    <div className="stack">
      {diagnosis !== null && !isExplained && (
        <div className="notice bad">
          <p>{diagnosis.summary}</p>
          <p className="quiet">{diagnosis.advice}</p>
        </div>
      )}
      <Waterfall attempt={attempt} />
      <Facts
        facts={[
          ['Began', <Time value={attempt.startedAt} full />],
          ['Took', millisecondsText(attempt.durationMs)],
          ['Address', attempt.address === null ? 'No connection' : <code>{attempt.address}</code>],
          ['URL', url !== delivery.url && url],
          ['Signed with', `Secret version ${attempt.signingKeyVersion}`],
          ['Error code', errorCode !== null && statusCode === null && <code>{errorCode}</code>],
          ['Refused before', earlierAddresses.length > 0 && <EarlierAddresses addresses={earlierAddresses} />],
        ]}
      />
      <div className="columns">
        <RequestHeaders attempt={attempt} />
        <Answer attempt={attempt} />
      </div>
    </div>
  );
}

function EarlierAddresses({ addresses }: { addresses: WebhookAttempt['earlierAddresses'] }) {
  return (
    <ul>
      {addresses.map(({ address, errorCode, durationMs }) => (
        <li key={address}>
          <code>{address}</code> {errorCode} after {millisecondsText(durationMs)}
        </li>
      ))}
    </ul>
  );
}

const headerText = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');

function RequestHeaders({ attempt: { requestHeaders } }: { attempt: WebhookAttempt }) {
  return (
    <div className="stack">
      <h3>Headers as sent</h3>
      {requestHeaders === null ? (
        <p className="quiet">No request was sent.</p>
      ) : (
        <>
          <Code text={headerText(requestHeaders)} label="Headers as sent" wrap />
          <p className="quiet">Signatures are cut to their first 8 characters, enough to compare them.</p>
        </>
      )}
    </div>
  );
}

function Answer({ attempt }: { attempt: WebhookAttempt }) {
  const { statusCode, responseHeaders, responseBody, responseTruncated } = attempt;
  const head = [
    ...(statusCode === null ? [] : [`HTTP ${statusCode}`]),
    ...(responseHeaders === null ? [] : [headerText(responseHeaders)]),
  ].join('\n');
  return (
    <div className="stack">
      <h3>Answer</h3>
      {statusCode === null ? (
        <p className="quiet">The receiver did not answer.</p>
      ) : (
        <>
          <Code text={head} label="Status and headers of the answer" wrap />
          {responseBody === null || responseBody === '' ? (
            <p className="quiet">The answer had no body.</p>
          ) : (
            <Code text={responseBody} label="Body of the answer" wrap />
          )}
          {responseTruncated && <p className="quiet">The body was longer: its first KiB is kept.</p>}
        </>
      )}
    </div>
  );
}

/** All attempts of a delivery, the latest first and open. */
export function Attempts({ delivery }: { delivery: WebhookDeliveryDetail }) {
  const { endpointId, id: deliveryId } = delivery;
  return (
    <RowList
      list={useApiList('listAttempts', { endpointId, deliveryId })}
      what="the attempts"
      empty={<p className="quiet">There was no attempt yet.</p>}
      more="Show earlier attempts"
      row={(attempt, at) => (
        <details className="card attempt" open={at === 0}>
          <summary>
            <strong>{attemptName(attempt)}</strong>
            <AttemptResult {...attempt} />
            <span className="quiet number">{millisecondsText(attempt.durationMs)}</span>
            <span className="quiet attempt-time">
              <Time value={attempt.startedAt} />
            </span>
          </summary>
          <Attempt attempt={attempt} at={at} delivery={delivery} />
        </details>
      )}
    />
  );
}

type Phase = WebhookAttempt['phases'][number];

const TEXTS: Record<Phase['phase'], readonly [name: string, meaning: string]> = {
  dns: ['DNS', 'The host name was resolved'],
  earlier_addresses: ['Other addresses', 'Addresses of the host that refused the connection'],
  connect: ['Connect', 'A TCP connection was opened'],
  tls: ['TLS', 'The encrypted connection was agreed on'],
  first_byte: ['First byte', 'The request was sent, and the receiver began to answer'],
  body: ['Body', 'The answer was read'],
};
const TICKS = [0, 0.25, 0.5, 0.75, 1];

function millisecondsText(milliseconds: number): string {
  return milliseconds < 10_000 ? `${milliseconds} ms` : `${(milliseconds / 1_000).toFixed(1)} s`;
}

/** One unit for all ticks of an axis. */
function tickText(milliseconds: number, wholeMs: number): string {
  return wholeMs < 4_000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1_000).toFixed(1)} s`;
}

/** Where the time of an attempt went: a bar for each phase, at its place in the attempt. */
function Waterfall({ attempt: { phases, durationMs, statusCode } }: { attempt: WebhookAttempt }) {
  if (phases.length === 0) return <p className="quiet">No time was measured: the attempt ended before a connection.</p>;
  return (
    <figure className="stack" aria-label={`The attempt took ${millisecondsText(durationMs)}`}>
      <ul className="waterfall">
        {phases.map((phase) => (
          <Bar key={phase.phase} phase={phase} wholeMs={durationMs} />
        ))}
      </ul>
      <div className="waterfall-axis" aria-hidden="true">
        {TICKS.map((tick) => (
          <span key={tick} style={{ left: `${tick * 100}%` }}>
            {tickText(durationMs * tick, durationMs)}
          </span>
        ))}
      </div>
      {!phases.some(({ phase }) => phase === 'connect') && statusCode !== null && (
        <p className="quiet">The connection was kept alive from an earlier request, so none was opened.</p>
      )}
    </figure>
  );
}

function Bar({ phase: { phase, startMs, durationMs, failed }, wholeMs }: { phase: Phase; wholeMs: number }) {
  const share = (milliseconds: number): string => `${(milliseconds / Math.max(1, wholeMs)) * 100}%`;
  const [name, meaning] = TEXTS[phase];
  return (
    <li className="waterfall-row" title={`${meaning}, from ${millisecondsText(startMs)} on`}>
      <span>{name}</span>
      <span className="waterfall-track">
        <span
          className={`waterfall-bar ${failed ? 'failed' : phase}`}
          style={{ left: share(startMs), width: share(durationMs) }}
        />
      </span>
      <span className={`waterfall-time${failed ? ' failed' : ''}`}>
        {millisecondsText(durationMs)}
        {failed && ' failed'}
      </span>
    </li>
  );
}
