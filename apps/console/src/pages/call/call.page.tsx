import type { Room } from '@callplane/server/requests';
import { type SubmitEvent, useState } from 'react';
import { useApi, useApiAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Check, Field, FormError, InputField } from '../../components/fields.js';
import { Page } from '../../components/layout.js';
import { Empty, Loaded } from '../../components/states.js';
import { useQueryParameters } from '../../navigation/location.js';
import { useScope } from '../../session/session.js';
import { useLive } from '../../stream/live.js';
import { RunningCall } from './running-call.js';

/** A call in a room of this environment, with a token that is made on the spot. */
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

export interface Admission {
  token: string;
  withDevices: boolean;
}

function JoinForm({ roomId, onAdmitted }: { roomId: string; onAdmitted: (admission: Admission) => void }) {
  const mayRead = useScope('rooms:read');
  const active = useApi('listRooms', { status: 'active', limit: ROOMS_SHOWN }, { enabled: mayRead });
  const created = useApi('listRooms', { status: 'created', limit: ROOMS_SHOWN }, { enabled: mayRead });
  if (!mayRead) return <Form rooms={[]} roomId={roomId} onAdmitted={onAdmitted} />;
  return (
    <Loaded query={active.data === undefined ? active : created} what="the rooms">
      {() => {
        const open = [...(active.data?.data ?? []), ...(created.data?.data ?? [])];
        if (open.length === 0 && roomId === '') {
          return (
            <Empty icon="camera" title="No room is open.">
              Create one on the page “Rooms” first.
            </Empty>
          );
        }
        return <Form rooms={open} roomId={roomId} onAdmitted={onAdmitted} />;
      }}
    </Loaded>
  );
}

function Form({
  rooms,
  roomId,
  onAdmitted,
}: {
  rooms: readonly Room[];
  roomId: string;
  onAdmitted: (admission: Admission) => void;
}) {
  const [room, setRoom] = useState(roomId === '' ? (rooms[0]?.id ?? '') : roomId);
  const [name, setName] = useState('Console');
  const [withDevices, setWithDevices] = useState(true);
  const isListed = rooms.some(({ id }) => id === room);
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
        {(attributes) => (
          <select {...attributes} required value={room} onChange={(event) => setRoom(event.target.value)}>
            {!isListed && <option value={room}>{room}</option>}
            {rooms.map(({ id, name: text }) => (
              <option key={id} value={id}>
                {text}
              </option>
            ))}
          </select>
        )}
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
