import type { Participant, Session } from '@callplane/server/requests';
import { useState, type SubmitEvent } from 'react';
import { asApiError, type ApiError } from '../../api/api-error.js';
import { useApiAction } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { Check, FormEnd } from '../../components/fields.js';

type Permission = Session['permissions'][number];
const PERMISSIONS: readonly (readonly [Permission, string])[] = [
  ['audio:publish', 'Publish a microphone'],
  ['video:publish', 'Publish a camera'],
  ['screen:publish', 'Share a screen'],
  ['messages:send', 'Send messages'],
  ['metadata:update', 'Change the own metadata'],
];

export function ChangePermissions({
  participant,
  current,
  onClose,
}: {
  participant: Participant;
  /** Those of the newest session. */
  current: readonly Permission[];
  onClose: () => void;
}) {
  const [chosen, setChosen] = useState<readonly Permission[]>(current);
  const [error, setError] = useState<ApiError>();
  const update = useApiAction('updateParticipant', {
    done: `The permissions of ${participant.name} have been changed.`,
    onDone: onClose,
    onError: (failure) => setError(asApiError(failure)),
  });
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    // `room:join` cannot be taken away: removing the participant does that.
    const permissions = [...new Set<Permission>(['room:join', ...chosen])];
    update.mutate({ roomId: participant.roomId, participantId: participant.id, permissions });
  };
  const lost = PERMISSIONS.filter(([name]) => current.includes(name) && !chosen.includes(name));
  return (
    <Dialog title={`Permissions of ${participant.name}`} onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <p className="quiet">
          New permissions take effect at once, also in the running call, and stay for later joins. No new token is
          needed.
        </p>
        {participant.leftAt !== null && (
          <p className="notice">
            {participant.name} has left. The boxes show the permissions of the last session; a change since then is not
            shown.
          </p>
        )}
        <fieldset>
          <legend className="visually-hidden">Permissions</legend>
          {PERMISSIONS.map(([name, text]) => (
            <Check
              key={name}
              label={text}
              checked={chosen.includes(name)}
              onChange={({ target }) =>
                setChosen(target.checked ? [...chosen, name] : chosen.filter((one) => one !== name))
              }
            />
          ))}
        </fieldset>
        {lost.some(([name]) => name.endsWith(':publish')) && (
          <p className="notice warn">Tracks that the participant may no longer publish are unpublished at once.</p>
        )}
        <FormEnd error={error} action="Change the permissions" isBusy={update.isPending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
