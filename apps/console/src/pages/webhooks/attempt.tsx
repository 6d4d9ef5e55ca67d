import type { WebhookAttempt, WebhookDeliveryDetail } from '@callplane/server/requests';
import { useApiList } from '../../api/hooks.js';
import { Facts, RowList } from '../../components/layout.js';
import { Badge, Code, Time } from '../../components/text.js';
import { millisecondsText, Waterfall } from './waterfall.js';

/** The result of an attempt in two words: its status or its error code. */
function AttemptResult({ attempt }: { attempt: Pick<WebhookAttempt, 'outcome' | 'statusCode' | 'errorCode'> }) {
  const { outcome, statusCode, errorCode } = attempt;
  const text = statusCode === null ? (errorCode ?? outcome) : `HTTP ${statusCode}`;
  return <Badge tone={outcome === 'success' ? 'good' : 'bad'}>{text}</Badge>;
}

/** Run and number of an attempt: "Attempt 2", "Replay 1, attempt 2". */
function attemptName({ replayCount, attempt }: Pick<WebhookAttempt, 'replayCount' | 'attempt'>): string {
  return replayCount === 0 ? `Attempt ${attempt}` : `Replay ${replayCount}, attempt ${attempt}`;
}

/** Everything about one attempt: times, address, request headers and answer. */
function Attempt({
  attempt,
  deliveryUrl,
  isExplained,
}: {
  attempt: WebhookAttempt;
  /** URL of the current run, which the page shows elsewhere. */
  deliveryUrl: string;
  /** Whether the page shows the diagnosis of this attempt elsewhere. */
  isExplained: boolean;
}) {
  const { diagnosis, earlierAddresses, url, errorCode, statusCode } = attempt;
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
          ['URL', url !== deliveryUrl && url],
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
      )}
    />
  );
}
