import type { IceServer } from '@callplane/server/requests';
import { useMutation } from '@tanstack/react-query';
import { callApi } from '../../api/call.js';
import { Button } from '../../components/button.js';
import { PlainTable } from '../../components/layout.js';
import { Empty, Failure } from '../../components/states.js';
import { Badge } from '../../components/text.js';
import { CONSOLE_LIMITS } from '../../limits.js';
import { nowMs } from '../../moving-time.js';

/** Whether the TURN servers of this environment allocate relays for this browser. */
export function TurnTest() {
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: async () => {
      const { iceServers } = await callApi('issueTurnCredentials', {});
      return Promise.all(turnServersOf(iceServers).map(allocateRelay));
    },
  });
  return (
    <div className="stack">
      <p className="quiet">
        The test issues temporary TURN credentials, and asks each TURN server for a relay from this browser. A relay
        carries media when a firewall blocks the direct way.
      </p>
      <div>
        <Button kind="primary" onClick={() => mutate()} isBusy={isPending}>
          {isPending ? 'Testing…' : 'Test the TURN servers'}
        </Button>
      </div>
      <div aria-live="polite">
        {error !== null && <Failure error={error} />}
        {data !== undefined && <Results results={data} />}
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
        cells: [
          <code>{url}</code>,
          ...(outcome.name === 'allocated'
            ? [<Badge tone="good">relay allocated</Badge>, <code>{outcome.address}</code>, `${outcome.tookMs} ms`]
            : [<Badge tone="bad">no relay</Badge>, outcome.why, '']),
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
