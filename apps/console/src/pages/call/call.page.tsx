import type { ReceivedMessage } from '@callplane/client-js';
import {
  Call,
  CallBody,
  CallHeader,
  ControlBar,
  LeaveButton,
  PanelButton,
  SettingsButton,
  SourceButton,
} from '@callplane/react';
import '@callplane/react/styles.css';
import type { Room } from '@callplane/server/requests';
import { type SubmitEvent, useEffect, useState } from 'react';
import { useApi, useApiAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Check, Field, FormError, InputField, Select } from '../../components/fields.js';
import { Page } from '../../components/layout.js';
import { Empty, Loaded } from '../../components/states.js';
import { toast } from '../../components/toasts.js';
import { useQueryParameters } from '../../navigation/location.js';
import { holdActive } from '../../session/idle.js';
import { useScope, useSignalingUrl } from '../../session/session.js';
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

const CONSTRAINTS = { video: { width: { ideal: 640 }, height: { ideal: 360 } } };

function RunningCall({ admission, onEnd }: { admission: Admission; onEnd: (why: string) => void }) {
  const url = useSignalingUrl();
  // A listener has no input.
  useEffect(holdActive, []);
  return (
    <Call
      url={url}
      token={admission.token}
      audio={admission.withDevices}
      video={admission.withDevices}
      constraints={CONSTRAINTS}
      isEmbedded
      onJoined={(call) => call.on('message', showMessage)}
      onError={({ message }) => onEnd(`The room could not be joined: ${message}`)}
      onEnd={({ reason, message, canRejoin }) => {
        const advice = canRejoin ? ' You can join again.' : '';
        onEnd(reason === 'left' ? 'You left the call.' : `The call is over: ${message}${advice}`);
      }}
    >
      <CallHeader />
      <CallBody />
      <ControlBar>
        <SourceButton source="microphone" />
        <SourceButton source="camera" />
        <PanelButton panel="people" />
        <SettingsButton />
        <LeaveButton />
      </ControlBar>
    </Call>
  );
}

/** Characters of a message that the page shows. */
const MESSAGE_SHOWN_MAX = 200;

function showMessage({ isFromServer, participant, data }: ReceivedMessage): void {
  const sender = isFromServer ? 'the server' : (participant?.name ?? 'a participant who left');
  toast(`Message from ${sender}: ${JSON.stringify(data).slice(0, MESSAGE_SHOWN_MAX)}`);
}
