import type { Call, CallEvents, LocalTrack, RemoteTrack } from '@callplane/client-js';
import { useEffect, useReducer, useRef, useState } from 'react';
import { Button } from '../../components/button.js';
import { Loading } from '../../components/states.js';
import { Badge } from '../../components/text.js';
import { plural } from '../../format.js';
import { holdActive } from '../../session/idle.js';
import { useSession } from '../../session/session.js';
import type { Admission } from './call.page.js';

/** Everyone in the room, and the own devices. */
export function RunningCall({ admission, onEnd }: { admission: Admission; onEnd: (why: string) => void }) {
  const { session } = useSession();
  // Who listens has no input.
  useEffect(holdActive, []);
  const url = session?.signalingUrl ?? `${location.origin.replace(/^http/, 'ws')}/v1/signaling`;
  const { call, problem } = useCall(admission, url, onEnd);
  if (call === undefined) return <Loading what="the call" lines={3} />;
  const own = [...call.tracks.values()];
  return (
    <div className="stack">
      <div className="row">
        <Badge tone={call.state === 'connected' ? 'good' : 'warn'}>{call.state}</Badge>
        <span className="quiet">{plural(call.participantCount, 'participant')} in the room</span>
        {call.isAudioBlocked && (
          <Button kind="primary" onClick={() => void call.startAudio()}>
            Play the sound
          </Button>
        )}
      </div>
      {problem !== '' && (
        <p className="notice warn" role="alert">
          {problem}
        </p>
      )}
      <ul className="call-grid">
        <Person name="You" tracks={own} isOwn />
        {[...call.participants.values()].map(({ participantId, name, tracks, connectionQuality }) => (
          <Person key={participantId} name={name} tracks={[...tracks.values()]} quality={connectionQuality} />
        ))}
      </ul>
      <Controls call={call} own={own} />
    </div>
  );
}

function Controls({ call, own }: { call: Call; own: readonly LocalTrack[] }) {
  const toggle = (track: LocalTrack) => void (track.muted ? call.unmute(track.trackId) : call.mute(track.trackId));
  return (
    <div className="row">
      {own.map((track) => (
        <Button
          key={track.trackId}
          icon={track.kind === 'audio' ? 'microphone' : 'camera'}
          aria-pressed={track.muted}
          onClick={() => toggle(track)}
        >
          {`${track.muted ? 'Unmute' : 'Mute'} the ${track.kind === 'audio' ? 'microphone' : 'camera'}`}
        </Button>
      ))}
      <Button kind="danger" icon="leave" onClick={() => void call.leave()}>
        Leave the call
      </Button>
    </div>
  );
}

type Track = LocalTrack | RemoteTrack;

function Person({
  name,
  tracks,
  quality,
  isOwn = false,
}: {
  name: string;
  tracks: readonly Track[];
  quality?: string | undefined;
  isOwn?: boolean;
}) {
  const video = tracks.find(({ kind, muted }) => kind === 'video' && !muted);
  const sound = tracks.find(({ kind }) => kind === 'audio');
  const notes = [sound === undefined || sound.muted ? 'muted' : '', quality ?? ''].filter((note) => note !== '');
  return (
    <li className="person">
      {video === undefined ? (
        <span className="person-initial" aria-hidden="true">
          {initialOf(name)}
        </span>
      ) : (
        <Media track={video} />
      )}
      {/* One's own sound would echo. */}
      {sound !== undefined && !isOwn && <Media track={sound} />}
      <p className="person-name">
        <span className="cut">{name}</span>
        {notes.length > 0 && <small>{notes.join(', ')}</small>}
      </p>
    </li>
  );
}

/** @returns the first letter or digit of a name */
function initialOf(name: string): string {
  return (/\p{L}|\p{N}/u.exec(name)?.[0] ?? '?').toUpperCase();
}

function Media({ track }: { track: Track }) {
  const ref = useRef<HTMLVideoElement & HTMLAudioElement>(null);
  useEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    track.attach(element);
    return () => void track.detach(element);
  }, [track]);
  return track.kind === 'video' ? <video ref={ref} aria-hidden="true" /> : <audio ref={ref} />;
}

/** Events after which the page shows something else. */
const SHOWN: readonly (keyof CallEvents)[] = [
  ...(['state', 'mediaState', 'connectionQuality', 'permissionsChanged', 'rosterPaged'] as const),
  ...(['participantJoined', 'participantLeft', 'participantUpdated', 'viewerCount'] as const),
  ...(['trackPublished', 'trackUnpublished', 'trackSubscribed', 'trackUnsubscribed', 'trackUpdated'] as const),
  ...(['localTrackPublished', 'localTrackUpdated', 'localTrackUnpublished', 'audioPlaybackBlocked'] as const),
];

/** Joins with a token, and leaves when the page closes. Loads the SDK only now: no other page needs it. */
function useCall(
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
