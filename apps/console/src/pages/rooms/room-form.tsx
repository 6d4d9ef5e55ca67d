import type { Room } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { FormEnd, InputField } from '../../components/fields.js';
import { Badge, type Tone } from '../../components/text.js';
import { navigate } from '../../navigation/location.js';
import { changesOf } from '../changes-of.js';

const TONES: Record<Room['status'], Tone> = { created: 'quiet', active: 'good', ending: 'warn', ended: 'quiet' };

export function RoomStatus({ status }: { status: Room['status'] }) {
  return <Badge tone={TONES[status]}>{status}</Badge>;
}

type RoomFields = Pick<Room, 'name' | 'maxParticipants' | 'emptyTimeoutSeconds'>;
const NEW_ROOM: RoomFields = { name: '', maxParticipants: 100, emptyTimeoutSeconds: null };

export function RoomForm({ room, onClose }: { room?: Room; onClose: () => void }) {
  const [opened] = useState<RoomFields>(room ?? NEW_ROOM);
  const [name, setName] = useState(opened.name);
  const [capacity, setCapacity] = useState(String(opened.maxParticipants));
  const { emptyTimeoutSeconds } = opened;
  const [minutes, setMinutes] = useState(emptyTimeoutSeconds === null ? '' : String(emptyTimeoutSeconds / 60));
  const create = useApiAction('createRoom', {
    done: 'The room has been created.',
    onDone: ({ id }) => navigate(`/rooms/${id}`),
    isForm: true,
  });
  const update = useApiAction('updateRoom', { done: 'The room has been changed.', onDone: onClose, isForm: true });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const timeout = minutes === '' ? null : Math.round(Number(minutes) * 60);
    const fields: RoomFields = { name, maxParticipants: Number(capacity), emptyTimeoutSeconds: timeout };
    // Only the fields that this form changes, so that it does not undo the change of another session.
    const changed = changesOf(opened, fields);
    if (room === undefined) create.mutate(fields);
    else if (Object.keys(changed).length === 0) onClose();
    else update.mutate({ roomId: room.id, ...changed });
  };
  const isNew = room === undefined;
  const { error, isPending } = isNew ? create : update;
  return (
    <Dialog title={isNew ? 'Create a room' : 'Edit the room'} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p className="quiet">
          {isNew
            ? 'Nobody joins by this. Participants join with tokens that your backend issues.'
            : 'Clients in the call see the new name at once. Webhooks get room.updated.'}
        </p>
        <InputField label="Name" required maxLength={120} autoComplete="off" value={name} onValue={setName} />
        <InputField
          label="Participants at most"
          hint={
            isNew ? '1 to 100,000 at the same time.' : 'A lower number removes nobody. It only refuses further joins.'
          }
          type="number"
          required
          min={1}
          max={100_000}
          value={capacity}
          onValue={setCapacity}
        />
        <InputField
          label="Minutes until it ends while it is empty"
          hint="1 minute to 7 days, also if nobody joins. Without a number, the setting of the deployment."
          type="number"
          min={1}
          max={10_080}
          step="any"
          value={minutes}
          onValue={setMinutes}
        />
        <FormEnd error={error} action={isNew ? 'Create the room' : 'Save'} isBusy={isPending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
