import { ROOM_OPTIONS } from '@callplane/core/options';
import type { Room } from '@callplane/server/requests';
import { useState } from 'react';
import { useApi, useAskedAction } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Facts, LoadedPage, Page } from '../../components/layout.js';
import { optionFacts } from '../../components/options.js';
import { Tabs } from '../../components/tabs.js';
import { Badge, Id, Json, Time } from '../../components/text.js';
import { countText } from '../../format.js';
import { Link } from '../../navigation/location.js';
import { useScope } from '../../session/session.js';
import { useLive } from '../../stream/live.js';
import { RoomForm, RoomStatus } from '../rooms/room-form.js';
import { OperationPanel, RoomOperation } from './operation.js';
import { Participants } from './participants.js';
import { SendMessage } from './send-message.js';
import { Timeline } from './timeline.js';
import { Tokens } from './tokens.js';

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
  const isOpen = room.status === 'created' || room.status === 'active';
  const close = () => setOpen(undefined);
  return (
    <>
      {mayJoin && isOpen && (
        <Link className="button plain" to={`/call?room=${room.id}`}>
          Join
        </Link>
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
