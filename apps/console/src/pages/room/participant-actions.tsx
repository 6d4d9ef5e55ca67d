import type { Participant } from '@callplane/server/requests';
import { useApiAction, useAskedAction } from '../../api/hooks.js';
import { Button, IconButton } from '../../components/button.js';
import { useScope } from '../../session/session.js';
import { SOURCES } from './session-parts.js';

type Track = Participant['tracks'][number];

/** Mutes and removes a participant from its row in the list. */
export function RowActions({ participant }: { participant: Participant }) {
  const mute = useMute(participant);
  const remove = useRemove(participant);
  const { name, tracks } = participant;
  const microphone = tracks.find(({ source, muted }) => source === 'microphone' && !muted);
  return (
    <span className="row row-actions">
      {mute !== null && microphone !== undefined && (
        <IconButton icon="mute" label={`Mute ${name}`} onClick={() => mute.ask(microphone)} />
      )}
      {remove !== null && <IconButton icon="close" label={`Remove ${name}`} onClick={remove.ask} />}
    </span>
  );
}

/** Lets a participant who waits in, or refuses it: the removal. */
export function LobbyActions({ participant }: { participant: Participant }) {
  const { id: participantId, roomId, name } = participant;
  const mayAdmit = useScope('participants:update');
  const admit = useApiAction('admitParticipant', { done: `${name} was let in.` });
  const remove = useRemove(participant);
  return (
    <span className="row row-actions">
      {mayAdmit && (
        <Button
          className="small"
          aria-label={`Let in ${name}`}
          onClick={() => admit.mutate({ roomId, participantId })}
          isBusy={admit.isPending}
        >
          Let in
        </Button>
      )}
      {remove !== null && <IconButton icon="close" label={`Refuse ${name}`} onClick={remove.ask} />}
    </span>
  );
}

export function MuteButton({ participant, track }: { participant: Participant; track: Pick<Track, 'trackId'> }) {
  const mute = useMute(participant);
  const current = participant.tracks.find(({ trackId }) => trackId === track.trackId);
  if (mute === null || current === undefined || current.muted) return null;
  return (
    <Button className="small" onClick={() => mute.ask(current)} isBusy={mute.isPending}>
      Mute
    </Button>
  );
}

export function RemoveButton({ participant, onRemoved }: { participant: Participant; onRemoved: () => void }) {
  const remove = useRemove(participant, onRemoved);
  if (remove === null) return null;
  return (
    <Button kind="danger" onClick={remove.ask} isBusy={remove.isPending}>
      Remove
    </Button>
  );
}

/** Null if this session may not mute anyone. */
function useMute({ id: participantId, roomId, name }: Participant) {
  const mayMute = useScope('participants:update');
  const { isPending, ask } = useAskedAction('muteTrack', { done: `A track of ${name} was muted.` });
  if (!mayMute) return null;
  return {
    isPending,
    ask: ({ trackId, source }: Track) =>
      ask(
        {
          title: `Mute the ${SOURCES[source]} of ${name}?`,
          action: 'Mute',
          body: (
            <p>
              Everyone stops receiving it at once. The participant may unmute it again. To keep it silent, take the
              permission away.
            </p>
          ),
        },
        { roomId, participantId, trackId },
      ),
  };
}

/** Null if this session may not remove anyone. */
function useRemove({ id: participantId, roomId, name, leftAt, state }: Participant, onDone?: () => void) {
  const mayRemove = useScope('participants:remove');
  const { isPending, ask } = useAskedAction('removeParticipant', {
    done: state === 'waiting' ? `${name} was refused.` : `${name} was removed from the room.`,
    ...(onDone === undefined ? {} : { onDone }),
  });
  if (!mayRemove) return null;
  const question = {
    title: `${state === 'waiting' ? 'Refuse' : 'Remove'} ${name}?`,
    isDangerous: true,
    action: state === 'waiting' ? 'Refuse' : 'Remove the participant',
    body: (
      <>
        <p>This happens at once, and cannot be undone:</p>
        <ul>
          {leftAt === null && <li>The participant is disconnected.</li>}
          <li>The identity is blocked: its tokens stop working, and new connections are refused.</li>
          <li>The person can come back only with a new token from your backend.</li>
        </ul>
      </>
    ),
  };
  return { isPending, ask: () => ask(question, { roomId, participantId }) };
}
