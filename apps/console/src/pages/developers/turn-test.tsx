import type { IceServer } from '@callplane/server/requests';
import { useState } from 'react';
import { asApiError } from '../../api/api-error.js';
import { callApi } from '../../api/call.js';
import { Button } from '../../components/button.js';
import { PlainTable } from '../../components/layout.js';
import { Empty, Failure } from '../../components/states.js';
import { Badge } from '../../components/text.js';
import { CONSOLE_LIMITS } from '../../limits.js';
import { nowMs } from '../../moving-time.js';

type State =
  | { name: 'idle' }
  | { name: 'running' }
  | { name: 'done'; results: readonly RelayResult[] }
  | { name: 'failed'; error: unknown };

/** Whether the TURN servers of this environment allocate relays for this browser. */
export function TurnTest() {
  const [state, setState] = useState<State>({ name: 'idle' });
  const run = async () => {
    setState({ name: 'running' });
    try {
      const { iceServers } = await callApi('issueTurnCredentials', {});
      setState({ name: 'done', results: await Promise.all(turnServersOf(iceServers).map(allocateRelay)) });
    } catch (error) {
      setState({ name: 'failed', error: asApiError(error) });
    }
  };
  return (
    <div className="stack">
      <p className="quiet">
        The test issues temporary TURN credentials, and asks each TURN server for a relay from this browser. A relay
        carries media when a firewall blocks the direct way.
      </p>
      <div>
        <Button kind="primary" onClick={() => void run()} isBusy={state.name === 'running'}>
          {state.name === 'running' ? 'Testing…' : 'Test the TURN servers'}
        </Button>
      </div>
      <div aria-live="polite">
        {state.name === 'failed' && <Failure error={state.error} />}
        {state.name === 'done' && <Results results={state.results} />}
      </div>
    </div>
  );
}

function Results({ results }: { results: readonly RelayResult[] }) {
  if (results.length === 0) {
    return (
      <Empty icon="warning" title="No TURN server is configured.">
        Calls work only where clients reach the media servers directly. Set <code>TURN_URLS</code>.
      </Empty>
    );
  }
  return (
    <PlainTable
      label="TURN servers"
      head={['Server', 'Result', 'Relay', 'Time']}
      rows={results.map(({ url, outcome }) => ({
        key: url,
        cells:
          outcome.name === 'allocated'
            ? [
                <code key="url">{url}</code>,
                <Badge key="state" tone="good">
                  relay allocated
                </Badge>,
                <code key="address">{outcome.address}</code>,
                `${outcome.tookMs} ms`,
              ]
            : [
                <code key="url">{url}</code>,
                <Badge key="state" tone="bad">
                  no relay
                </Badge>,
                outcome.why,
                '',
              ],
      }))}
    />
  );
}

interface RelayResult {
  url: string;
  /** The address that the TURN server allocated, or why it did not. */
  outcome: { name: 'allocated'; address: string; tookMs: number } | { name: 'failed'; why: string };
}

/** @returns the TURN addresses among ICE servers, each with its own credentials */
function turnServersOf(servers: readonly IceServer[]): { url: string; server: RTCIceServer }[] {
  return servers.flatMap(({ urls, username = '', credential = '' }) =>
    urls.filter((url) => url.startsWith('turn')).map((url) => ({ url, server: { urls: [url], username, credential } })),
  );
}

/** Asks one TURN server for a relay, as a call would. No other way of connecting is tried. */
function allocateRelay({ url, server }: { url: string; server: RTCIceServer }): Promise<RelayResult> {
  const startedAt = nowMs();
  const connection = new RTCPeerConnection({ iceServers: [server], iceTransportPolicy: 'relay' });
  return new Promise<RelayResult>((resolve) => {
    let why = `The server did not answer within ${CONSOLE_LIMITS.turnTestMs / 1_000} s.`;
    const end = (outcome: RelayResult['outcome']) => {
      clearTimeout(timer);
      connection.close();
      resolve({ url, outcome });
    };
    const timer = setTimeout(() => end({ name: 'failed', why }), CONSOLE_LIMITS.turnTestMs);
    connection.onicecandidate = ({ candidate }) => {
      if (candidate === null) {
        end({ name: 'failed', why });
      } else if (candidate.type === 'relay') {
        const address = `${candidate.address ?? '?'}:${candidate.port ?? '?'}`;
        end({ name: 'allocated', address, tookMs: nowMs() - startedAt });
      }
    };
    connection.onicecandidateerror = ({ errorCode, errorText }) => {
      why = `${errorCode} ${errorText}`.trim();
    };
    // A data channel makes the browser gather candidates without asking for devices.
    connection.createDataChannel('turn-test');
    connection
      .createOffer()
      .then((offer) => connection.setLocalDescription(offer))
      .catch((error: unknown) => end({ name: 'failed', why: String(error) }));
  });
}
