import type { InputOf, Room } from '@callplane/server/requests';
import { useState } from 'react';
import { useApi, useApiList, type ApiList } from '../../api/hooks.js';
import { Button } from '../../components/button.js';
import { Filters, SelectFilter, TextFilter } from '../../components/fields.js';
import { Page } from '../../components/layout.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Badge, Time } from '../../components/text.js';
import { useQueryParameters } from '../../navigation/location.js';
import { useScope } from '../../session/session.js';
import { useLive } from '../../stream/live.js';
import { RoomForm, RoomStatus } from './room-form.js';

const COLUMNS: readonly Column<Room>[] = [
  {
    title: 'Name',
    width: '3fr',
    cell: ({ id, name, recordingSince }) => (
      <span className="two-lines">
        <span className="cut">
          {recordingSince !== null && <Badge tone="bad">recording</Badge>} {name}
        </span>
        <code className="quiet small cut">{id}</code>
      </span>
    ),
  },
  { title: 'Status', width: '6rem', cell: ({ status }) => <RoomStatus status={status} /> },
  { title: 'In room', width: '5.5rem', priority: 2, align: 'end', cell: (room) => room.participantCount },
  { title: 'Capacity', width: '6rem', priority: 3, align: 'end', cell: (room) => room.maxParticipants },
  { title: 'Created', width: '8rem', priority: 2, cell: ({ createdAt }) => <Time value={createdAt} /> },
  { title: 'Started', width: '8rem', priority: 2, cell: ({ startedAt }) => <Time value={startedAt} /> },
  { title: 'Ended', width: '8rem', priority: 3, cell: ({ endedAt }) => <Time value={endedAt} /> },
];
const STATUSES = [
  ['', 'All'],
  ['created', 'Created'],
  ['active', 'Active'],
  ['ending', 'Ending'],
  ['ended', 'Ended'],
] as const;

export default function RoomsPage() {
  useLive(['rooms']);
  const [parameters, change] = useQueryParameters();
  const [isCreating, setCreating] = useState(false);
  const mayCreate = useScope('rooms:create');
  const status = STATUSES.find(([value]) => value === parameters.get('status'))?.[0] ?? '';
  const namePrefix = (parameters.get('name') ?? '').trim();
  const filters: InputOf<'listRooms'> = {
    ...(status === '' ? {} : { status }),
    ...(namePrefix === '' ? {} : { namePrefix }),
  };
  const list = useRooms(filters);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <Page
      title="Rooms"
      subtitle="Every call of this environment, newest first."
      actions={
        mayCreate && (
          <Button kind="primary" onClick={() => setCreating(true)}>
            Create a room
          </Button>
        )
      }
    >
      <Filters>
        <TextFilter label="Name begins with, or identifier" name="name" placeholder="Search rooms" />
        <SelectFilter label="Status" name="status" options={STATUSES} />
      </Filters>
      <ListTable
        label="Rooms"
        list={list}
        columns={COLUMNS}
        to={({ id }) => `/rooms/${id}`}
        empty={
          isFiltered ? (
            <Empty icon="search" title="No room matches these filters.">
              <Button onClick={() => change({ name: '', status: '' })}>Remove the filters</Button>
            </Empty>
          ) : (
            <Empty icon="camera" title="This environment has no rooms yet.">
              Your backend creates a room with <code>POST /v1/rooms</code>. It appears here at once.
            </Empty>
          )
        }
      />
      {isCreating && <RoomForm onClose={() => setCreating(false)} />}
    </Page>
  );
}

/** The rooms that match; the one room if the reader looks for an identifier. */
function useRooms(filters: InputOf<'listRooms'>): ApiList<Room> {
  const { namePrefix = '', status } = filters;
  const isId = /^room_[0-9A-Za-z]+$/.test(namePrefix);
  const list = useApiList('listRooms', filters);
  const { data, isPending } = useApi('readRoom', { roomId: namePrefix }, { enabled: isId });
  if (!isId || list.items.length > 0) return list;
  const isShown = data !== undefined && (status === undefined || data.status === status);
  return { ...list, items: isShown ? [data] : [], isLoading: list.isLoading || isPending };
}
