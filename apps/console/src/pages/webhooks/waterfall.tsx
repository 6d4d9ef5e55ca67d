import type { WebhookAttempt } from '@callplane/server/requests';

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

export function millisecondsText(milliseconds: number): string {
  return milliseconds < 10_000 ? `${milliseconds} ms` : `${(milliseconds / 1_000).toFixed(1)} s`;
}

/** One unit for all ticks of an axis. */
function tickText(milliseconds: number, wholeMs: number): string {
  return wholeMs < 4_000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1_000).toFixed(1)} s`;
}

/** Where the time of an attempt went: a bar for each phase, at its place in the attempt. */
export function Waterfall({ attempt: { phases, durationMs, statusCode } }: { attempt: WebhookAttempt }) {
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
