import type { Call, CallEvents } from '@callplane/client-js';
import { useEffect, useReducer, useState } from 'react';
import type { Admission } from './join-form.js';

/** Events after which the page shows something else. */
const SHOWN: readonly (keyof CallEvents)[] = [
  ...(['state', 'mediaState', 'connectionQuality', 'permissionsChanged', 'rosterPaged'] as const),
  ...(['participantJoined', 'participantLeft', 'participantUpdated', 'viewerCount'] as const),
  ...(['trackPublished', 'trackUnpublished', 'trackSubscribed', 'trackUnsubscribed', 'trackUpdated'] as const),
  ...(['localTrackPublished', 'localTrackUpdated', 'localTrackUnpublished', 'audioPlaybackBlocked'] as const),
];

/** Joins with a token, and leaves when the page closes. Loads the SDK only now: no other page needs it. */
export function useCall(
  { token, withDevices }: Admission,
  url: string,
  onEnd: (why: string) => void,
): { call: Call | undefined; problem: string } {
  const [call, setCall] = useState<Call>();
  const [problem, setProblem] = useState('');
  const [, render] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const closing = new AbortController();
    const { signal } = closing;
    let joined: Call | undefined;
    const join = async () => {
      const { connect } = await import('@callplane/client-js');
      joined = await connect({ url, token, signal });
      for (const name of SHOWN) joined.on(name, render);
      joined.on('problem', (error) => setProblem(error.message));
      joined.on('closed', ({ reason, message }) => {
        if (!signal.aborted) onEnd(reason === 'left' ? 'You left the call.' : `The call is over: ${message}`);
      });
      setCall(joined);
      if (withDevices) await joined.publish({ audio: true, video: true });
    };
    join().catch((error: unknown) => {
      if (signal.aborted) return;
      const why = error instanceof Error ? error.message : String(error);
      if (joined === undefined) onEnd(`The room could not be joined: ${why}`);
      else setProblem(`The devices could not be published: ${why}`);
    });
    return () => {
      closing.abort();
      void joined?.leave();
    };
  }, [token, url, withDevices]);
  return { call, problem };
}
