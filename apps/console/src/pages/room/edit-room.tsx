import type { Room } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { asApiError, type ApiError } from '../../api/api-error.js';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { FormEnd } from '../../components/fields.js';
import { CapacityField, emptyTimeoutOf, EmptyTimeoutField, minutesOf, NameField } from '../rooms/room-fields.js';

export function EditRoom({ room, onClose }: { room: Room; onClose: () => void }) {
  const [opened] = useState(room);
  const [name, setName] = useState(room.name);
  const [capacity, setCapacity] = useState(String(room.maxParticipants));
  const [emptyMinutes, setEmptyMinutes] = useState(minutesOf(room.emptyTimeoutSeconds));
  const [error, setError] = useState<ApiError>();
  const update = useApiAction('updateRoom', {
    done: 'The room has been changed.',
    onDone: onClose,
    onError: (failure) => setError(asApiError(failure)),
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    // Only what this form changes, so that it does not undo the change of another session.
    const emptyTimeoutSeconds = emptyTimeoutOf(emptyMinutes);
    const changed = {
      ...(name === opened.name ? {} : { name }),
      ...(Number(capacity) === opened.maxParticipants ? {} : { maxParticipants: Number(capacity) }),
      ...(emptyTimeoutSeconds === opened.emptyTimeoutSeconds ? {} : { emptyTimeoutSeconds }),
    };
    if (Object.keys(changed).length === 0) onClose();
    else update.mutate({ roomId: room.id, ...changed });
  };
  return (
    <Dialog title="Edit the room" onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <p className="quiet">
          Clients in the call see the new name at once. Webhooks get <code>room.updated</code>.
        </p>
        <NameField label="Name" value={name} onChange={setName} />
        <CapacityField
          hint="A lower number removes nobody. It only refuses further joins."
          value={capacity}
          onChange={setCapacity}
        />
        <EmptyTimeoutField value={emptyMinutes} onChange={setEmptyMinutes} />
        <FormEnd error={error} action="Save" isBusy={update.isPending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
