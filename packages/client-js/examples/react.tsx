import { connect, type Call, type RemoteTrack } from '@callplane/client-js';
import { useCallback, useEffect, useState } from 'react';

/** Takes part in the room while the component is mounted. */
export function useCall(url: string, token: string): { call: Call | undefined; tracks: RemoteTrack[] } {
  const [call, setCall] = useState<Call>();
  const [tracks, setTracks] = useState<RemoteTrack[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    connect({ url, token, signal: abort.signal }).then(
      (joined) => {
        abort.signal.addEventListener('abort', () => void joined.leave());
        joined.on('trackSubscribed', (track) => setTracks((all) => [...all, track]));
        joined.on('trackUnsubscribed', (track) => setTracks((all) => all.filter((one) => one !== track)));
        setCall(joined);
      },
      (error) => abort.signal.aborted || console.warn(error),
    );
    return () => abort.abort();
  }, [url, token]);
  return { call, tracks };
}

/** One microphone, camera or screen of another participant. */
export function Track({ track }: { track: RemoteTrack }) {
  const attach = useCallback(
    (element: HTMLMediaElement | null) => {
      if (element !== null) track.attach(element);
      return () => void track.detach();
    },
    [track],
  );
  return track.kind === 'video' ? <video ref={attach} /> : <audio ref={attach} />;
}
