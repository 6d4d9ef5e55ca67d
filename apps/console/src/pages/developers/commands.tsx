import type { InputOf, OperationId } from '@callplane/server/requests';
import { curlOf } from '../../api/curl.js';
import { useApi } from '../../api/hooks.js';
import { Section } from '../../components/layout.js';
import { Code } from '../../components/text.js';
import { useScope, useSession, type Scope } from '../../session/session.js';

interface Command {
  title: string;
  id: OperationId;
  scope?: Scope;
  input: object;
}

/** The requests of a first call, with the identifiers of the newest room. */
function commandsOf(roomId: string): readonly Command[] {
  const one = <Id extends OperationId>(title: string, id: Id, input: InputOf<Id>, scope?: Scope): Command => ({
    title,
    id,
    input,
    ...(scope === undefined ? {} : { scope }),
  });
  return [
    one('Read the context of a key', 'readContext', {}),
    one('Create a room', 'createRoom', { name: 'Consultation' }, 'rooms:create'),
    one(
      'Issue a token for a participant',
      'issueToken',
      {
        roomId,
        participantName: 'Ada',
        permissions: ['room:join', 'audio:publish', 'video:publish'],
      },
      'tokens:create',
    ),
    one('List the participants in the room', 'listParticipants', { roomId, status: 'active' }, 'participants:read'),
    one('Wait for the next events', 'listEvents', { after: 'latest', wait: 20 }, 'webhooks:read'),
    one('End the room', 'endRoom', { roomId }, 'rooms:end'),
  ];
}

export function Commands() {
  const { scopes } = useSession();
  const mayReadRooms = useScope('rooms:read');
  const rooms = useApi('listRooms', { limit: 1 }, { enabled: mayReadRooms });
  const roomId = rooms.data?.data[0]?.id ?? 'ROOM_ID';
  const shown = commandsOf(roomId).filter(({ scope }) => scope === undefined || scopes.includes(scope));
  return (
    <>
      <p className="quiet commands-hint">
        Put a secret API key into <code>CALLPLANE_API_KEY</code>.
        {roomId !== 'ROOM_ID' && ' The commands name the newest room of this environment.'} The button “Requests” in the
        navigation shows those of any page.
      </p>
      {shown.map(({ title, id, input }) => (
        <Section key={title} title={title}>
          <Code text={curlOf(id, input, location.origin)} label={`curl: ${title}`} />
        </Section>
      ))}
    </>
  );
}
