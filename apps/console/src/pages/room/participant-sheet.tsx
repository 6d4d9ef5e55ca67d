import type { Participant, Session, SessionTrack } from '@callplane/server/requests';
import { type SubmitEvent, useState } from 'react';
import { useApiAction, useApiList } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Dialog } from '../../components/dialog.js';
import { Check, FormEnd } from '../../components/fields.js';
import { Facts, RowList, Section } from '../../components/layout.js';
import { Id, Json, Time } from '../../components/text.js';
import { useScope } from '../../session/session.js';
import { MuteButton, RemoveButton } from './participant-actions.js';
import { SendMessage } from './send-message.js';
import { publishedTracks, QualitySeconds, SOURCES } from './session-parts.js';

const REASONS: Record<NonNullable<Session['reason']>, string> = {
  left: 'left',
  removed: 'was removed',
  room_ended: 'the room ended',
  connection_lost: 'the connection was lost',
  superseded: 'joined again elsewhere',
  moved: 'was moved to another room',
};

export function ParticipantSheet({
  participant,
  isRoomOver,
  onClose,
}: {
  participant: Participant;
  isRoomOver: boolean;
  onClose: () => void;
}) {
  const { id, roomId, name, externalId, role, metadata, joinedAt, leftAt } = participant;
  const sessions = useApiList('listParticipantSessions', { roomId, participantId: id });
  const [session] = sessions.items;
  const tracks = publishedTracks(session);
  return (
    <Dialog side title={name} onClose={onClose}>
      {!isRoomOver && <Actions participant={participant} session={session} onRemoved={onClose} />}
      <Facts
        facts={[
          ['Role', role],
          ['External id', externalId ?? 'none'],
          ['Joined', <Time value={joinedAt} full />],
          ['Left', <Time value={leftAt} full />],
          ['Identifier', <Id value={id} label="participant's identifier" />],
        ]}
      />
      <Section title="Published tracks">
        {tracks.length === 0 ? (
          <p className="quiet">None at the moment.</p>
        ) : (
          <ul className="stack">
            {tracks.map((track) => (
              <TrackRow key={track.trackId} participant={participant} track={track} />
            ))}
          </ul>
        )}
      </Section>
      <Section title="Sessions">
        <RowList
          list={sessions}
          what="the sessions"
          empty={<p className="quiet">None yet.</p>}
          more="Show older sessions"
          row={(one) => <SessionRow session={one} />}
        />
      </Section>
      <Section title="Metadata">
        <Json value={metadata} label="Metadata of the participant" />
      </Section>
    </Dialog>
  );
}

function Actions({
  participant,
  session,
  onRemoved,
}: {
  participant: Participant;
  session: Session | undefined;
  onRemoved: () => void;
}) {
  const [open, setOpen] = useState<'message' | 'permissions'>();
  const mayUpdate = useScope('participants:update');
  const { id, roomId, name, leftAt } = participant;
  const close = () => setOpen(undefined);
  return (
    <div className="row">
      {mayUpdate && leftAt === null && <Button onClick={() => setOpen('message')}>Send a message</Button>}
      {/* Without the session, the dialog would begin with no permissions, and take all away. */}
      {mayUpdate && session !== undefined && <Button onClick={() => setOpen('permissions')}>Change permissions</Button>}
      <RemoveButton participant={participant} onRemoved={onRemoved} />
      {open === 'message' && <SendMessage roomId={roomId} to={{ id, name }} onClose={close} />}
      {open === 'permissions' && session !== undefined && (
        <ChangePermissions participant={participant} current={session.permissions} onClose={close} />
      )}
    </div>
  );
}

function TrackRow({ participant, track }: { participant: Participant; track: SessionTrack }) {
  const source = SOURCES[track.source];
  const isMuted = participant.tracks.some(({ trackId, muted }) => trackId === track.trackId && muted);
  return (
    <li className="row spread">
      <span>
        {source.slice(0, 1).toUpperCase() + source.slice(1)}{' '}
        <span className="quiet">
          {track.kind}, {isMuted && 'muted, '}since <Time value={track.publishedAt} />
        </span>
      </span>
      <MuteButton participant={participant} track={track} />
    </li>
  );
}

function SessionRow({ session: { joinedAt, leftAt, reason, quality } }: { session: Session }) {
  return (
    <div className="session-row">
      <p>
        <Time value={joinedAt} full />
        <span className="quiet">{leftAt === null ? ' until now' : ' to '}</span>
        {leftAt !== null && <Time value={leftAt} full />}
        {reason !== null && <span className="quiet">, {REASONS[reason]}</span>}
      </p>
      {quality !== null && <QualitySeconds quality={quality} />}
    </div>
  );
}

type Permission = Session['permissions'][number];
const PERMISSIONS: readonly (readonly [Permission, string])[] = [
  ['audio:publish', 'Publish a microphone'],
  ['video:publish', 'Publish a camera'],
  ['screen:publish', 'Share a screen'],
  ['messages:send', 'Send messages'],
  ['metadata:update', 'Change the own metadata'],
];

function ChangePermissions({
  participant,
  current,
  onClose,
}: {
  participant: Participant;
  /** Permissions of the newest session. */
  current: readonly Permission[];
  onClose: () => void;
}) {
  const [chosen, setChosen] = useState<readonly Permission[]>(current);
  const update = useApiAction('updateParticipant', {
    done: `The permissions of ${participant.name} have been changed.`,
    onDone: onClose,
    isForm: true,
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
      <form className="stack" onSubmit={submit}>
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
        <FormEnd error={update.error} action="Change the permissions" isBusy={update.isPending} onCancel={onClose} />
      </form>
    </Dialog>
  );
}
