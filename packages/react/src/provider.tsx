'use client';
import {
  CallplaneError,
  type Call,
  type CloseInfo,
  connect,
  type ConnectOptions,
  type LocalTrack,
} from '@callplane/client-js';
import { memo, type ReactNode, useEffect, useRef, useState } from 'react';
import { companionOf } from './companion.js';
import { type Joining, JoiningContext, useCallState } from './context.js';
import { type Constraints, ConstraintsContext } from './local-media.js';
import { Media } from './parts/media.js';

export interface CallProviderProps {
  /** The gateway, like `wss://calls.example.com`. */
  url: string;
  /** Participant token of your backend. Another token, or another URL, leaves the room and joins again. */
  token: string;
  /** Devices to begin with; default: the user opens them. */
  audio?: boolean;
  video?: boolean;
  /** Tracks of a preview to begin with. They are closed with the call, and when the component is unmounted. */
  tracks?: readonly LocalTrack[] | undefined;
  /** How microphone and camera are opened. */
  constraints?: Constraints | undefined;
  /** More options of `connect()`, as of the moment of the join. */
  options?: Omit<ConnectOptions, 'url' | 'token' | 'signal'> | undefined;
  /** The participant is in the room, and not in its lobby. */
  onJoined?: ((call: Call) => void) | undefined;
  /** The call is over: the user has left, or the room has ended. */
  onEnd?: ((close: CloseInfo) => void) | undefined;
  /** The room could not be joined. */
  onError?: ((error: CallplaneError) => void) | undefined;
  children?: ReactNode;
}

const NO_TRACKS: readonly LocalTrack[] = [];
const NO_CONSTRAINTS: Constraints = {};

/** Takes part in a call while it is mounted, plays its sound, and gives it to the hooks below. It renders no picture. */
export function CallProvider({ children, ...props }: CallProviderProps) {
  const { url, token, tracks = NO_TRACKS, constraints = NO_CONSTRAINTS } = props;
  const latest = useRef(props);
  const [joining, setJoining] = useState<Joining>({ call: undefined, error: undefined });
  useEffect(() => {
    latest.current = props;
  });
  useEffect(() => {
    const leaving = new AbortController();
    void join(latest, leaving.signal, setJoining);
    return () => {
      leaving.abort();
      setJoining({ call: undefined, error: undefined });
    };
  }, [url, token]);
  useStopAtEnd(tracks);
  return (
    <JoiningContext.Provider value={joining}>
      <ConstraintsContext.Provider value={constraints}>
        {children}
        <Sounds />
      </ConstraintsContext.Provider>
    </JoiningContext.Provider>
  );
}

async function join(
  latest: { readonly current: CallProviderProps },
  signal: AbortSignal,
  setJoining: (joining: Joining) => void,
): Promise<void> {
  // In development, React runs an effect twice at once: the first run is aborted by now and has connected to nothing.
  await Promise.resolve();
  const isAborted = () => signal.aborted;
  if (isAborted()) return;
  const { url, token, options, tracks = NO_TRACKS, audio = false, video = false, constraints } = latest.current;
  let call: Call;
  try {
    call = await connect({ ...options, url, token, signal });
  } catch (cause) {
    if (isAborted()) return;
    const error = cause instanceof CallplaneError ? cause : new CallplaneError('internal', String(cause), { cause });
    setJoining({ call: undefined, error });
    latest.current.onError?.(error);
    return;
  }
  signal.addEventListener('abort', () => void call.leave());
  companionOf(call);
  call.on('closed', (close) => {
    if (!signal.aborted) latest.current.onEnd?.(close);
  });
  setJoining({ call, error: undefined });
  if (call.state === 'waiting') await new Promise<void>((resolve) => call.on('admitted', () => resolve()));
  latest.current.onJoined?.(call);
  const devices = { audio: audio && (constraints?.audio ?? true), video: video && (constraints?.video ?? true) };
  // A failure is in the snapshot: without a camera, the user can still watch and listen.
  if (tracks.length > 0) await call.publish(tracks).catch(() => undefined);
  else if (audio || video) await call.publish(devices).catch(() => undefined);
}

/** Closes the devices of a preview with the component, also if it is unmounted before it has joined. */
function useStopAtEnd(tracks: readonly LocalTrack[]): void {
  const isMounted = useRef(false);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
      // React mounts a component twice at once in development.
      queueMicrotask(() => {
        if (!isMounted.current) for (const track of tracks) track.stop();
      });
    };
  }, [tracks]);
}

/** Plays the microphones of the others and the sound of their screens. */
const Sounds = memo(function Sounds() {
  const tracks = useCallState(
    ({ participants }) =>
      [...participants.values()].flatMap((one) => [...one.tracks.values()].filter(({ kind }) => kind === 'audio')),
    // Another snapshot of a track has the same functions.
    (before, after) => before.length === after.length && before.every(({ attach }, at) => attach === after[at]?.attach),
  );
  return tracks.map((track) => <Media key={`${track.participantId} ${track.trackId}`} track={track} hidden />);
});
