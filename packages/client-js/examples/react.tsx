import { connect, INITIAL_SNAPSHOT, type Call, type CallSnapshot, type RemoteTrack } from '@callplane/client-js';
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';

/** Takes part in the room while the component is mounted. */
export function useCall(url: string, token: string): Call | undefined {
  const [call, setCall] = useState<Call>();
  useEffect(() => {
    const abort = new AbortController();
    connect({ url, token, signal: abort.signal }).then(
      (joined) => {
        abort.signal.addEventListener('abort', () => void joined.leave());
        setCall(joined);
      },
      (error) => abort.signal.aborted || console.warn(error),
    );
    return () => abort.abort();
  }, [url, token]);
  return call;
}

const never = () => () => undefined;
const initial = () => INITIAL_SNAPSHOT;

/** Selects a part of the call. The component renders again when that part changes. */
export function useSnapshot<T>(call: Call | undefined, select: (snapshot: CallSnapshot) => T): T {
  const get = call?.getSnapshot ?? initial;
  return useSyncExternalStore(
    call?.subscribe ?? never,
    () => select(get()),
    () => select(INITIAL_SNAPSHOT),
  );
}

/** Everyone else in the room, with picture and sound. */
export function Others({ call }: { call: Call | undefined }) {
  const participants = useSnapshot(call, (snapshot) => snapshot.participants);
  const tracks = [...participants.values()].flatMap((one) => [...one.tracks.values()]);
  return tracks.map((track) => <Track key={`${track.participantId} ${track.trackId}`} track={track} />);
}

/** One microphone, camera or screen of another participant. */
export function Track({ track: { kind, attach, detach } }: { track: RemoteTrack }) {
  // These functions stay the same while the track is published.
  const ref = useCallback(
    (element: HTMLMediaElement | null) => {
      if (element !== null) attach(element);
      return () => void detach();
    },
    [attach, detach],
  );
  return kind === 'video' ? <video ref={ref} /> : <audio ref={ref} />;
}
