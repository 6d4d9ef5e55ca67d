import { optionDefaults, optionsOf, ROOM_OPTIONS, type RoomOptions } from '@callplane/core/options';
import type { Room } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { FormEnd, InputField } from '../../components/fields.js';
import { OptionFields } from '../../components/options.js';
import { Badge, type Tone } from '../../components/text.js';
import { navigate } from '../../navigation/location.js';
import { changesOf } from '../changes-of.js';

const TONES: Record<Room['status'], Tone> = { created: 'quiet', active: 'good', ending: 'warn', ended: 'quiet' };

export function RoomStatus({ status }: { status: Room['status'] }) {
  return <Badge tone={TONES[status]}>{status}</Badge>;
}

type RoomFields = Pick<Room, 'name' | keyof RoomOptions>;
const NEW_ROOM: RoomFields = { name: '', ...optionDefaults(ROOM_OPTIONS) };

export function RoomForm({ room, onClose }: { room?: Room; onClose: () => void }) {
  const [opened] = useState<RoomFields>(room ?? NEW_ROOM);
  const [edited, setEdited] = useState<Partial<RoomFields>>({});
  const values = { ...opened, ...edited };
  const set = (changes: Partial<RoomFields>) => setEdited((before) => ({ ...before, ...changes }));
  const create = useApiAction('createRoom', {
    done: 'The room has been created.',
    onDone: ({ id }) => navigate(`/rooms/${id}`),
    isForm: true,
  });
  const update = useApiAction('updateRoom', { done: 'The room has been changed.', onDone: onClose, isForm: true });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    // Only the fields that this form changes, so that it does not undo the change of another session.
    const changed = changesOf(opened, edited);
    if (room === undefined) create.mutate({ name: values.name, ...optionsOf(ROOM_OPTIONS, values) });
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
        <InputField
          label="Name"
          required
          maxLength={120}
          autoComplete="off"
          value={values.name}
          onValue={(name) => set({ name })}
        />
        <OptionFields table={ROOM_OPTIONS} values={values} isNew={isNew} set={set} />
        <FormEnd error={error} action={isNew ? 'Create the room' : 'Save'} isBusy={isPending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
