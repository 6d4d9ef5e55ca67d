import { testConnection, type ConnectionTestStep } from '@callplane/client-js';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { callApi } from '../../api/call.js';
import { Button } from '../../components/button.js';
import { PlainTable } from '../../components/layout.js';
import { Failure } from '../../components/states.js';
import { Badge } from '../../components/text.js';
import { useSignalingUrl } from '../../session/session.js';

const BADGES = {
  passed: <Badge tone="good">works</Badge>,
  failed: <Badge tone="bad">fails</Badge>,
  skipped: <Badge tone="quiet">not tested</Badge>,
};
const NAMES: Record<ConnectionTestStep['name'], string> = {
  webSocket: 'Signaling',
  turnUdp: 'TURN over UDP',
  turnTcp: 'TURN over TCP',
  turnTls: 'TURN over TLS',
  udp: 'UDP without a relay',
  loop: 'Loop through relays',
};

/** Which ways to the gateway and to the TURN servers of this environment are open for this browser, and how fast one is. */
export function LineTest() {
  const url = useSignalingUrl();
  const [steps, setSteps] = useState<readonly ConnectionTestStep[]>([]);
  const [abort] = useState(() => new AbortController());
  useEffect(() => () => abort.abort(), [abort]);
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: async () => {
      setSteps([]);
      const { iceServers } = await callApi('issueTurnCredentials', {});
      const onStep = (step: ConnectionTestStep) => setSteps((before) => [...before, step]);
      const tested = await testConnection({ url, iceServers, onStep, signal: abort.signal });
      setSteps(tested.steps);
      return tested;
    },
  });
  return (
    <div className="stack">
      <p className="quiet">
        The test issues temporary TURN credentials and tries each way that a call from this browser may take. Then it
        measures a loop through the relays, whose packets cross the line up and down. Nobody joins.
      </p>
      <div>
        <Button kind="primary" onClick={() => mutate()} isBusy={isPending}>
          {isPending ? 'Testing…' : 'Test the line'}
        </Button>
      </div>
      <div aria-live="polite" className="stack">
        {error !== null && <Failure error={error} />}
        {data !== undefined && (
          <p>{data.isUsable ? 'Calls work from this browser.' : 'No call works from this browser.'}</p>
        )}
        {steps.length > 0 && (
          <PlainTable
            label="Line"
            head={['Way', 'Result', 'Finding', 'Time']}
            rows={steps.map(({ name, outcome, message, durationMs }) => ({
              key: name,
              cells: [NAMES[name], BADGES[outcome], message, outcome === 'skipped' ? '' : `${durationMs} ms`],
            }))}
          />
        )}
      </div>
    </div>
  );
}
