import type { Participant, Room, Session } from '@callplane/server/requests';
import { useEffect, useMemo, useState } from 'react';
import { useApiList } from '../../api/hooks.js';
import { Filters, SelectFilter } from '../../components/fields.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Badge, Time } from '../../components/text.js';
import { useQueryParameters } from '../../navigation/location.js';
import { ParticipantSheet } from './participant-sheet.js';
import { Quality } from './quality.js';
import { TrackIcons } from './track-icons.js';

const SHOWN = [
  ['active', 'In the room now'],
  ['', 'Everyone'],
  ['left', 'Left'],
] as const;

/** Everyone who has joined, with the connection of their newest session. */
export function Participants({ room }: { room: Room }) {
  const [parameters, change] = useQueryParameters();
  const [openId, setOpenId] = useState<string>();
  const isOver = room.status === 'ended';
  const chosen = parameters.get('people') ?? (isOver ? '' : 'active');
  const status = chosen === 'active' || chosen === 'left' ? chosen : undefined;
  const list = useApiList('listParticipants', { roomId: room.id, ...(status === undefined ? {} : { status }) });
  const sessions = useSessionsOf(room.id, list.items.length);
  const columns = useMemo(() => columnsOf(sessions, setOpenId), [sessions]);
  const opened = list.items.find(({ id }) => id === openId);
  return (
    <>
      <Filters>
        <SelectFilter
          label="Show"
          value={chosen === 'all' ? '' : chosen}
          options={SHOWN}
          onChange={(value) => change({ people: value === '' ? 'all' : value })}
        />
      </Filters>
      <ListTable
        label="Participants"
        list={list}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty icon="people" title={status === 'active' ? 'Nobody is in the room.' : 'Nobody has joined yet.'}>
            Your backend issues a token for each participant. Participants appear here when they join.
          </Empty>
        }
      />
      {opened !== undefined && (
        <ParticipantSheet
          participant={opened}
          session={sessions.get(opened.id)}
          isRoomOver={isOver}
          onClose={() => setOpenId(undefined)}
        />
      )}
    </>
  );
}

/** The newest session of each participant. Loads as many sessions as there are participants on the page. */
function useSessionsOf(roomId: string, wanted: number): ReadonlyMap<string, Session> {
  const { items, hasMore, loadMore } = useApiList('listRoomSessions', { roomId });
  const newest = useMemo(() => {
    const map = new Map<string, Session>();
    for (const session of items) if (!map.has(session.participantId)) map.set(session.participantId, session);
    return map;
  }, [items]);
  useEffect(() => {
    if (hasMore && newest.size < wanted) loadMore();
  }, [hasMore, newest.size, wanted, loadMore]);
  return newest;
}

function columnsOf(sessions: ReadonlyMap<string, Session>, open: (id: string) => void): Column<Participant>[] {
  const sessionOf = ({ id }: Participant) => sessions.get(id);
  return [
    {
      title: 'Name',
      width: '2fr',
      cell: ({ id, name }) => (
        <button type="button" className="row-link row-button" onClick={() => open(id)}>
          {name}
        </button>
      ),
    },
    {
      title: 'State',
      width: '7rem',
      cell: ({ leftAt }) => (
        <Badge tone={leftAt === null ? 'good' : 'quiet'}>{leftAt === null ? 'in room' : 'left'}</Badge>
      ),
    },
    {
      title: 'Connection',
      width: '10rem',
      priority: 2,
      cell: (one) => <Quality session={sessionOf(one)} />,
    },
    { title: 'Tracks', width: '6rem', priority: 2, cell: (one) => <TrackIcons session={sessionOf(one)} /> },
    {
      title: 'External id',
      width: '10rem',
      priority: 3,
      cell: ({ externalId }) => externalId ?? <span className="quiet">–</span>,
    },
    { title: 'Joined', width: '8rem', priority: 2, cell: ({ joinedAt }) => <Time value={joinedAt} /> },
    { title: 'Left', width: '8rem', priority: 3, cell: ({ leftAt }) => <Time value={leftAt} /> },
  ];
}
