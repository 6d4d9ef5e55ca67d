import { ROOM_OPTIONS } from '@callplane/core/options';
import type { Room, RuntimeOperation, ResultOf } from '@callplane/server/requests';
import { useState } from 'react';
import { useApi, useApiAction, useAskedAction, useApiList } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Facts, LoadedPage, Page } from '../../components/layout.js';
import { optionFacts } from '../../components/options.js';
import { Tabs } from '../../components/tabs.js';
import { Badge, Id, Json, Time, type Tone } from '../../components/text.js';
import { countText } from '../../format.js';
import { Link, navigate } from '../../navigation/location.js';
import { useScope } from '../../session/session.js';
import { useLive } from '../../stream/live.js';
import { RoomForm, RoomStatus } from '../rooms/room-form.js';
import { Participants } from './participants.js';
import { RoomMediaPanel } from './room-media.js';
import { SendMessage } from './send-message.js';
import { Timeline } from './timeline.js';
import { asApiError } from '../../api/api-error.js';
import { Empty, Loaded } from '../../components/states.js';
import { ListTable, type Column } from '../../components/list-table.js';

const UP = { to: '/rooms', label: 'Rooms' };

export default function RoomPage({ parameters }: { parameters: Record<string, string> }) {
  const { roomId = '' } = parameters;
  useLive(['rooms', 'participants', 'operations'], roomId);
  return (
    <LoadedPage query={useApi('readRoom', { roomId })} title="Room" up={UP}>
      {(room) => <RoomView room={room} />}
    </LoadedPage>
  );
}

function RoomView({ room }: { room: Room }) {
  const mayReadEvents = useScope('webhooks:read');
  const mayReadPeople = useScope('participants:read');
  const tabs = [
    ...(mayReadPeople
      ? [{ name: 'participants', label: 'Participants', content: () => <Participants room={room} /> }]
      : []),
    ...(mayReadEvents ? [{ name: 'timeline', label: 'Timeline', content: () => <Timeline roomId={room.id} /> }] : []),
    ...(mayReadPeople ? [{ name: 'tokens', label: 'Tokens', content: () => <Tokens room={room} /> }] : []),
    { name: 'media', label: 'Media', content: () => <RoomMediaPanel roomId={room.id} /> },
    { name: 'operation', label: 'Operation', content: () => <OperationPanel roomId={room.id} /> },
    { name: 'metadata', label: 'Metadata', content: () => <Json value={room.metadata} label="Metadata of the room" /> },
  ];
  return (
    <Page
      title={room.name}
      up={UP}
      badge={
        <>
          <RoomStatus status={room.status} />
          <span role="status">{room.recordingSince !== null && <Badge tone="bad">recording</Badge>}</span>
        </>
      }
      subtitle={<Id value={room.id} label="room's identifier" />}
      actions={<Actions room={room} />}
    >
      <div className="card stack below room-facts">
        <Facts
          facts={[
            ['In the room', countText(room.participantCount)],
            ...optionFacts(ROOM_OPTIONS, room),
            ['Created', <Time value={room.createdAt} />],
            ['Started', <Time value={room.startedAt} />],
            ['Ended', <Time value={room.endedAt} />],
          ]}
        />
        {room.status === 'ending' && <RoomOperation roomId={room.id} />}
      </div>
      <Tabs label="The room" tabs={tabs} />
    </Page>
  );
}

function Actions({ room }: { room: Room }) {
  const [open, setOpen] = useState<'edit' | 'message'>();
  const end = useAskedAction('endRoom', {
    done: (operation) =>
      operation === undefined ? 'The room has ended.' : 'The room is ending. Its operation shows the progress.',
  });
  const mayMessage = useScope('participants:update');
  const mayUpdate = useScope('rooms:update');
  const mayEnd = useScope('rooms:end');
  const mayJoin = useScope('tokens:create');
  const mayRecord = useScope('recordings:write');
  const record = useApiAction('startRecording', { onDone: ({ id }) => navigate(`/recordings/${id}`) });
  const isOpen = room.status === 'created' || room.status === 'active';
  const close = () => setOpen(undefined);
  return (
    <>
      {mayJoin && isOpen && (
        <Link className="button plain" to={`/call?room=${room.id}`}>
          Join
        </Link>
      )}
      {mayRecord && isOpen && (
        <Button onClick={() => record.mutate({ roomId: room.id, mode: 'composite' })} isBusy={record.isPending}>
          Record
        </Button>
      )}
      {mayMessage && room.status === 'active' && <Button onClick={() => setOpen('message')}>Send a message</Button>}
      {mayUpdate && isOpen && <Button onClick={() => setOpen('edit')}>Edit</Button>}
      {mayEnd && room.status !== 'ended' && (
        <Button kind="danger" onClick={() => end.ask(endQuestion(room), { roomId: room.id })} isBusy={end.isPending}>
          End the room
        </Button>
      )}
      {open === 'edit' && <RoomForm room={room} onClose={close} />}
      {open === 'message' && <SendMessage roomId={room.id} onClose={close} />}
    </>
  );
}

const endQuestion = ({ name }: Room) => ({
  title: `End “${name}”?`,
  isDangerous: true,
  action: 'End the room',
  body: (
    <>
      <p>This happens at once, and cannot be undone:</p>
      <ul>
        <li>Everyone in the room is disconnected.</li>
        <li>Nobody can join it again. Its tokens stop working.</li>
        <li>Its media is removed from the media servers.</li>
        <li>
          Webhooks get <code>participant.left</code> for each participant and <code>room.ended</code>.
        </li>
      </ul>
      <p>Its history stays readable until its retention ends.</p>
    </>
  ),
});

const TONES: Record<RuntimeOperation['status'], Tone> = { pending: 'busy', completed: 'good', failed: 'bad' };

/** Attempts of an operation are no changes of the room, so the stream does not name them. */
function useRoomOperation(roomId: string) {
  return useApi('readRoomOperation', { roomId }, { everyMs: (answer) => answer?.status === 'pending' && 2_000 });
}

function RoomOperation({ roomId }: { roomId: string }) {
  const { data } = useRoomOperation(roomId);
  if (data === undefined || data.status === 'completed') return null;
  return (
    <p className={`notice${data.status === 'failed' ? ' bad' : ''}`}>
      {data.status === 'failed'
        ? `Ending the room failed after ${data.attempts} attempts: ${data.lastError?.message ?? 'unknown'}. End it again to retry.`
        : `The room is ending, attempt ${data.attempts}.`}
    </p>
  );
}

function OperationPanel({ roomId }: { roomId: string }) {
  const query = useRoomOperation(roomId);
  if (query.error !== null && asApiError(query.error).code === 'OPERATION_NOT_FOUND') {
    return (
      <Empty icon="check" title="This room has no operation.">
        Ending a room is a durable operation. It appears here with its attempts.
      </Empty>
    );
  }
  return (
    <Loaded query={query} what="the operation">
      {({ id, kind, status, attempts, lastError, completedAt }) => (
        <div className="card">
          <Facts
            facts={[
              ['Kind', <code>{kind}</code>],
              ['Status', <Badge tone={TONES[status]}>{status}</Badge>],
              ['Attempts', attempts],
              ['Completed', <Time value={completedAt} full />],
              ['Last error', lastError === null ? 'none' : `${lastError.code}: ${lastError.message}`],
              ['Identifier', <Id value={id} label="operation's identifier" />],
            ]}
          />
        </div>
      )}
    </Loaded>
  );
}

type Token = ResultOf<'listTokens'>['data'][number];
const TOKEN_TONES: Record<Token['state'], Tone> = {
  unused: 'busy',
  used: 'good',
  expired: 'quiet',
  room_ended: 'quiet',
  revoked: 'bad',
};

const COLUMNS: readonly Column<Token>[] = [
  { title: 'Participant', width: '2fr', cell: ({ participantName }) => participantName },
  {
    title: 'State',
    width: '7rem',
    cell: ({ state }) => <Badge tone={TOKEN_TONES[state]}>{state.replace('_', ' ')}</Badge>,
  },
  {
    title: 'Permissions',
    width: '2fr',
    priority: 3,
    cell: ({ permissions }) => permissions.filter((one) => one !== 'room:join').join(', ') || 'join only',
  },
  { title: 'Issued', width: '8rem', priority: 2, cell: ({ createdAt }) => <Time value={createdAt} /> },
  { title: 'Expires', width: '8rem', priority: 2, cell: ({ expiresAt }) => <Time value={expiresAt} /> },
  { title: 'Revoked', width: '8rem', priority: 3, cell: ({ revokedAt }) => <Time value={revokedAt} /> },
  { title: 'Identifier', width: '18rem', priority: 3, cell: ({ id }) => <code>{id}</code> },
];

/** The tokens of a room and whether they still work. The tokens themselves are not kept anywhere. */
function Tokens({ room }: { room: Room }) {
  const list = useApiList('listTokens', { roomId: room.id });
  return (
    <ListTable
      label="Tokens"
      list={list}
      columns={COLUMNS}
      empty={
        <Empty icon="people" title="No token has been issued for this room.">
          Your backend issues one for each participant with <code>POST /v1/rooms/{room.id}/tokens</code>.
        </Empty>
      }
    />
  );
}
