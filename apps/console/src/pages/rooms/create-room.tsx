import { useState, type SubmitEvent } from 'react';
import { asApiError, type ApiError } from '../../api/api-error.js';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { FormEnd } from '../../components/fields.js';
import { navigate } from '../../navigation/location.js';
import { CapacityField, emptyTimeoutOf, EmptyTimeoutField, NameField } from './room-fields.js';

export function CreateRoom({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [capacity, setCapacity] = useState('100');
  const [emptyMinutes, setEmptyMinutes] = useState('');
  const [error, setError] = useState<ApiError>();
  const create = useApiAction('createRoom', {
    done: 'The room has been created.',
    onDone: ({ id }) => navigate(`/rooms/${id}`),
    onError: (failure) => setError(asApiError(failure)),
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setError(undefined);
    create.mutate({ name, maxParticipants: Number(capacity), emptyTimeoutSeconds: emptyTimeoutOf(emptyMinutes) });
  };
  return (
    <Dialog title="Create a room" onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <p className="quiet">Nobody joins by this. Participants join with tokens that your backend issues.</p>
        <NameField label="Name" value={name} onChange={setName} />
        <CapacityField hint="1 to 100,000 at the same time." value={capacity} onChange={setCapacity} />
        <EmptyTimeoutField value={emptyMinutes} onChange={setEmptyMinutes} />
        <FormEnd error={error} action="Create the room" isBusy={create.isPending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
