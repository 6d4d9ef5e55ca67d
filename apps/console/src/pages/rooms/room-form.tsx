import type { Room } from '@callplane/server/requests';
import { useState, type ReactNode, type SubmitEvent } from 'react';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { FormEnd, InputField } from '../../components/fields.js';
import { Badge, type Tone } from '../../components/text.js';
import { navigate } from '../../navigation/location.js';

const TONES: Record<Room['status'], Tone> = { created: 'quiet', active: 'good', ending: 'warn', ended: 'quiet' };

export function RoomStatus({ status }: { status: Room['status'] }) {
  return <Badge tone={TONES[status]}>{status}</Badge>;
}

/** What the form of a room changes. */
type RoomFields = Pick<Room, 'name' | 'maxParticipants' | 'emptyTimeoutSeconds'>;

const NEW_ROOM: RoomFields = { name: '', maxParticipants: 100, emptyTimeoutSeconds: null };

export function CreateRoom({ onClose }: { onClose: () => void }) {
  const create = useApiAction('createRoom', {
    done: 'The room has been created.',
    onDone: ({ id }) => navigate(`/rooms/${id}`),
    isForm: true,
  });
  return (
    <RoomForm
      title="Create a room"
      intro="Nobody joins by this. Participants join with tokens that your backend issues."
      capacityHint="1 to 100,000 at the same time."
      action="Create the room"
      opened={NEW_ROOM}
      request={create}
      onSubmit={(fields) => create.mutate(fields)}
      onClose={onClose}
    />
  );
}

export function EditRoom({ room, onClose }: { room: Room; onClose: () => void }) {
  const [opened] = useState<RoomFields>(room);
  const update = useApiAction('updateRoom', { done: 'The room has been changed.', onDone: onClose, isForm: true });
  const submit = ({ name, maxParticipants, emptyTimeoutSeconds }: RoomFields) => {
    // Only what this form changes, so that it does not undo the change of another session.
    const changed = {
      ...(name === opened.name ? {} : { name }),
      ...(maxParticipants === opened.maxParticipants ? {} : { maxParticipants }),
      ...(emptyTimeoutSeconds === opened.emptyTimeoutSeconds ? {} : { emptyTimeoutSeconds }),
    };
    if (Object.keys(changed).length === 0) onClose();
    else update.mutate({ roomId: room.id, ...changed });
  };
  return (
    <RoomForm
      title="Edit the room"
      intro={
        <>
          Clients in the call see the new name at once. Webhooks get <code>room.updated</code>.
        </>
      }
      capacityHint="A lower number removes nobody. It only refuses further joins."
      action="Save"
      opened={opened}
      request={update}
      onSubmit={submit}
      onClose={onClose}
    />
  );
}

function RoomForm({
  title,
  intro,
  capacityHint,
  action,
  opened,
  request,
  onSubmit,
  onClose,
}: {
  title: string;
  intro: ReactNode;
  capacityHint: string;
  action: string;
  opened: RoomFields;
  request: { error: unknown; isPending: boolean };
  onSubmit: (fields: RoomFields) => void;
  onClose: () => void;
}) {
  const [name, setName] = useState(opened.name);
  const [capacity, setCapacity] = useState(String(opened.maxParticipants));
  const { emptyTimeoutSeconds } = opened;
  const [minutes, setMinutes] = useState(emptyTimeoutSeconds === null ? '' : String(emptyTimeoutSeconds / 60));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const timeout = minutes === '' ? null : Math.round(Number(minutes) * 60);
    onSubmit({ name, maxParticipants: Number(capacity), emptyTimeoutSeconds: timeout });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p className="quiet">{intro}</p>
        <InputField label="Name" required maxLength={120} autoComplete="off" value={name} onValue={setName} />
        <InputField
          label="Participants at most"
          hint={capacityHint}
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
        <FormEnd error={request.error} action={action} isBusy={request.isPending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
