import type { Call, PublishedTrack, RemoteTrack } from '@callplane/client-js';
import type { Room } from '@callplane/server/requests';
import { type SubmitEvent, useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import { useApi, useApiAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Check, Field, FormError, InputField, Select } from '../../components/fields.js';
import { Page } from '../../components/layout.js';
import { Empty, Loaded, Loading } from '../../components/states.js';
import { Badge } from '../../components/text.js';
import { toast } from '../../components/toasts.js';
import { plural } from '../../format.js';
import { useQueryParameters } from '../../navigation/location.js';
import { holdActive } from '../../session/idle.js';
import { useScope, useSession } from '../../session/session.js';
import { useLive } from '../../stream/live.js';

export default function CallPage() {
  useLive(['rooms']);
  const [parameters] = useQueryParameters();
  const [admission, setAdmission] = useState<Admission>();
  const [ending, setEnding] = useState('');
  const leave = (why: string) => {
    setEnding(why);
    setAdmission(undefined);
  };
  return (
    <Page
      title="Call"
      up={{ to: '/developers', label: 'Developers' }}
      subtitle="Joins a room from this browser, with a token made on the spot."
    >
      {admission === undefined ? (
        <>
          {ending !== '' && (
            <p className="notice below" role="status">
              {ending}
            </p>
          )}
          <JoinForm roomId={parameters.get('room') ?? ''} onAdmitted={setAdmission} />
        </>
      ) : (
        <RunningCall admission={admission} onEnd={leave} />
      )}
    </Page>
  );
}

const TTL_SECONDS = 600;
/** Rooms of each status in the list. */
const ROOMS_SHOWN = 50;

interface Admission {
  token: string;
  withDevices: boolean;
}

interface FormProps {
  rooms: readonly Room[];
  roomId: string;
  onAdmitted: (admission: Admission) => void;
}

function JoinForm(props: Omit<FormProps, 'rooms'>) {
  const mayRead = useScope('rooms:read');
  const active = useApi('listRooms', { status: 'active', limit: ROOMS_SHOWN }, { enabled: mayRead });
  const created = useApi('listRooms', { status: 'created', limit: ROOMS_SHOWN }, { enabled: mayRead });
  if (!mayRead) return <Form rooms={[]} {...props} />;
  return (
    <Loaded query={active.data === undefined ? active : created} what="the rooms">
      {() => {
        const open = [...(active.data?.data ?? []), ...(created.data?.data ?? [])];
        if (open.length === 0 && props.roomId === '') {
          return (
            <Empty icon="camera" title="No room is open.">
              Create one on the page “Rooms” first.
            </Empty>
          );
        }
        return <Form rooms={open} {...props} />;
      }}
    </Loaded>
  );
}

function Form({ rooms, roomId, onAdmitted }: FormProps) {
  const [room, setRoom] = useState(roomId === '' ? (rooms[0]?.id ?? '') : roomId);
  const [name, setName] = useState('Console');
  const [withDevices, setWithDevices] = useState(true);
  const isListed = rooms.some(({ id }) => id === room);
  const listed = rooms.map(({ id, name: text }) => [id, text] as const);
  const options = isListed ? listed : [[room, room] as const, ...listed];
  const { mutate, error, isPending } = useApiAction('issueToken', {
    onDone: ({ token }) => onAdmitted({ token, withDevices }),
    isForm: true,
  });
  const join = (event: SubmitEvent) => {
    event.preventDefault();
    const devices = withDevices ? (['audio:publish', 'video:publish'] as const) : [];
    mutate({ roomId: room, participantName: name, permissions: ['room:join', ...devices], ttlSeconds: TTL_SECONDS });
  };
  return (
    <form className="card stack join-form" onSubmit={join}>
      <Field
        label="Room"
        hint={isListed ? <code>{room}</code> : 'The newest rooms with a call, and the newest that wait for one.'}
      >
        {(attributes) => <Select {...attributes} required options={options} value={room} onValue={setRoom} />}
      </Field>
      <InputField
        label="Your name"
        hint="The others in the room see it."
        required
        maxLength={120}
        autoComplete="off"
        value={name}
        onValue={setName}
      />
      <Check
        label="Use the microphone and the camera"
        hint="Without them you only watch and listen."
        checked={withDevices}
        onChange={(event) => setWithDevices(event.target.checked)}
      />
      <FormError error={error} />
      <div>
        <Button kind="primary" type="submit" isBusy={isPending}>
          {isPending ? 'Joining…' : 'Join the room'}
        </Button>
      </div>
    </form>
  );
}

function RunningCall({ admission, onEnd }: { admission: Admission; onEnd: (why: string) => void }) {
  const { session } = useSession();
  // Who listens has no input.
  useEffect(holdActive, []);
  const url = session?.signalingUrl ?? `${location.origin.replace(/^http/, 'ws')}/v1/signaling`;
  const { call, problem, onProblem } = useCall(admission, url, onEnd);
  if (call === undefined) return <Loading what="the call" lines={3} />;
  return <PresentCall call={call} problem={problem} onProblem={onProblem} />;
}

function PresentCall({ call, problem, onProblem }: { call: Call; problem: string; onProblem: (text: string) => void }) {
  const { state, participantCount, recordingSince, isAudioBlocked, tracks, participants } = useSyncExternalStore(
    call.subscribe,
    call.getSnapshot,
  );
  const own = [...tracks.values()];
  return (
    <div className="stack">
      <div className="row">
        <Badge tone={state === 'connected' ? 'good' : 'warn'}>{state}</Badge>
        <span role="status">{recordingSince !== null && <Badge tone="bad">recording</Badge>}</span>
        <span className="quiet">{plural(participantCount, 'participant')} in the room</span>
        {isAudioBlocked && (
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
        {[...participants.values()].map(({ participantId, name, tracks: theirs, connectionQuality }) => (
          <Person key={participantId} name={name} tracks={[...theirs.values()]} quality={connectionQuality} />
        ))}
      </ul>
      <Controls call={call} own={own} onProblem={onProblem} />
    </div>
  );
}

interface ControlsProps {
  call: Call;
  own: readonly PublishedTrack[];
  onProblem: (text: string) => void;
}

function Controls({ call, own, onProblem }: ControlsProps) {
  const toggle = ({ muted, trackId }: PublishedTrack) => {
    const changing = muted ? call.unmute(trackId) : call.mute(trackId);
    changing.catch((error: unknown) => onProblem(messageOf(error)));
  };
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

type Track = PublishedTrack | RemoteTrack;

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
          {(/\p{L}|\p{N}/u.exec(name)?.[0] ?? '?').toUpperCase()}
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

function Media({ track: { kind, attach, detach } }: { track: Track }) {
  // Both stay the same while the track is published.
  const ref = useCallback(
    (element: HTMLMediaElement | null) => {
      if (element === null) return undefined;
      attach(element);
      return () => void detach(element);
    },
    [attach, detach],
  );
  return kind === 'video' ? <video ref={ref} aria-hidden="true" /> : <audio ref={ref} />;
}

/** Characters of a message that the page shows. */
const MESSAGE_SHOWN_MAX = 200;

/** Joins with a token, and leaves when the page closes. Loads the SDK only now: no other page needs it. */
function useCall(
  { token, withDevices }: Admission,
  url: string,
  onEnd: (why: string) => void,
): { call: Call | undefined; problem: string; onProblem: (text: string) => void } {
  const [call, setCall] = useState<Call>();
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const closing = new AbortController();
    const { signal } = closing;
    let joined: Call | undefined;
    const join = async () => {
      const { connect } = await import('@callplane/client-js');
      joined = await connect({ url, token, signal });
      joined.on('message', ({ isFromServer, participant, data }) => {
        const sender = isFromServer ? 'the server' : (participant?.name ?? 'a participant who left');
        toast(`Message from ${sender}: ${JSON.stringify(data).slice(0, MESSAGE_SHOWN_MAX)}`);
      });
      joined.on('problem', (error) => setProblem(error.message));
      joined.on('deviceFallback', ({ source }) => setProblem(`The chosen ${source} is gone. The default one is used.`));
      joined.on('closed', ({ reason, message, canRejoin }) => {
        const advice = canRejoin ? ' You can join again.' : '';
        if (!signal.aborted) onEnd(reason === 'left' ? 'You left the call.' : `The call is over: ${message}${advice}`);
      });
      setCall(joined);
      if (!withDevices) return;
      const { failed } = await joined.publish({ audio: true, video: true });
      setProblem(failed.map((one) => `The ${one.source} is not used: ${one.message}`).join(' '));
    };
    join().catch((error: unknown) => {
      if (signal.aborted) return;
      const why = messageOf(error);
      if (joined === undefined) onEnd(`The room could not be joined: ${why}`);
      else setProblem(`The devices could not be published: ${why}`);
    });
    return () => {
      closing.abort();
      void joined?.leave();
    };
  }, [token, url, withDevices]);
  return { call, problem, onProblem: setProblem };
}
