import type { InputOf, Room } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { asApiError, type ApiError } from '../../api/api-error.js';
import { callApi } from '../../api/call.js';
import { useApi } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { ErrorText } from '../../components/error-text.js';
import { Check, Field } from '../../components/fields.js';
import { Empty, Loaded } from '../../components/states.js';
import { useScope } from '../../session/session.js';
import { NameField } from '../rooms/room-fields.js';

const TTL_SECONDS = 600;
/** Rooms of each status in the list. */
const ROOMS_SHOWN = 50;

export interface Admission {
  roomId: string;
  token: string;
  withDevices: boolean;
}

export function JoinForm({ roomId, onAdmitted }: { roomId: string; onAdmitted: (admission: Admission) => void }) {
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
            <Empty icon="rooms" title="No room is open.">
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
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const isListed = rooms.some(({ id }) => id === room);
  const join = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const permissions = ['room:join', ...(withDevices ? ['audio:publish', 'video:publish'] : [])];
      const input = { roomId: room, participantName: name, permissions, ttlSeconds: TTL_SECONDS };
      const { token } = await callApi('issueToken', input as unknown as InputOf<'issueToken'>);
      onAdmitted({ roomId: room, token, withDevices });
    } catch (failure) {
      setError(asApiError(failure));
      setBusy(false);
    }
  };
  return (
    <form className="card form join-form" onSubmit={(event) => void join(event)}>
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
      <NameField label="Your name" hint="The others in the room see it." value={name} onChange={setName} />
      <Check
        label="Use the microphone and the camera"
        hint="Without them you only watch and listen."
        checked={withDevices}
        onChange={(event) => setWithDevices(event.target.checked)}
      />
      {error !== undefined && (
        <div role="alert" className="form-error">
          <ErrorText error={error} />
        </div>
      )}
      <div>
        <Button kind="primary" type="submit" isBusy={isBusy}>
          {isBusy ? 'Joining…' : 'Join the room'}
        </Button>
      </div>
    </form>
  );
}
