import type { Participant, Room, Session, SessionQuality } from '@callplane/server/requests';
import { useEffect, useMemo, useState } from 'react';
import { useApiList } from '../../api/hooks.js';
import { Filters, SelectFilter } from '../../components/fields.js';
import { Icon } from '../../components/icons.js';
import { RowList } from '../../components/layout.js';
import { type Column, ListTable } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Badge, Time, type Tone } from '../../components/text.js';
import { CONSOLE_LIMITS } from '../../limits.js';
import { useQueryParameters } from '../../navigation/location.js';
import { LobbyActions, RowActions } from './participant-actions.js';
import { ParticipantSheet } from './participant-sheet.js';
import { SOURCES } from './session-parts.js';

const SHOWN = [
  ['active', 'In the room now'],
  ['waiting', 'In the lobby'],
  ['all', 'Everyone'],
  ['left', 'Left'],
] as const;

const STATES: Record<Participant['state'], string> = {
  invited: 'invited',
  waiting: 'in lobby',
  connected: 'in room',
  disconnected: 'reconnecting',
  left: 'left',
  removed: 'removed',
  moved: 'moved',
};

const NOBODY = {
  active: 'Nobody is in the room.',
  waiting: 'Nobody waits in the lobby.',
  left: 'Nobody has left.',
  all: 'Nobody has joined yet.',
};

export function Participants({ room }: { room: Room }) {
  const [parameters] = useQueryParameters();
  const [openId, setOpenId] = useState<string>();
  const isOver = room.status === 'ended';
  const first = isOver ? 'all' : 'active';
  const [shown] = SHOWN.find(([value]) => value === (parameters.get('people') ?? first)) ?? SHOWN[0];
  const list = useApiList('listParticipants', { roomId: room.id, ...(shown === 'all' ? {} : { status: shown }) });
  const { newest: sessions, isLong, reload } = useSessionsOf(room.id, list.items);
  const both = {
    ...list,
    isLong: list.isLong || isLong,
    reload: () => {
      list.reload();
      reload();
    },
  };
  const columns = useMemo(() => columnsOf(sessions, setOpenId, isOver), [sessions, isOver]);
  const opened = list.items.find(({ id }) => id === openId);
  // A participant who comes back to the list must not open the sheet again.
  useEffect(() => {
    if (opened === undefined) setOpenId(undefined);
  }, [opened]);
  return (
    <>
      {!isOver && shown !== 'waiting' && <Lobby roomId={room.id} />}
      <Filters>
        <SelectFilter label="Show" name="people" unset={first} options={SHOWN} />
      </Filters>
      <ListTable
        label="Participants"
        list={both}
        columns={columns}
        empty={
          <Empty icon="people" title={NOBODY[shown]}>
            Your backend issues a token for each participant. Participants appear here when they join.
          </Empty>
        }
      />
      {opened !== undefined && (
        <ParticipantSheet participant={opened} isRoomOver={isOver} onClose={() => setOpenId(undefined)} />
      )}
    </>
  );
}

/** The people who wait to be let in, above the list. The status is there before anybody waits, so that it is spoken. */
function Lobby({ roomId }: { roomId: string }) {
  const list = useApiList('listParticipants', { roomId, status: 'waiting' });
  const count = list.items.length;
  const isEmpty = list.error === null && count === 0;
  return (
    <section className={isEmpty ? '' : 'card stack below'} aria-label="In the lobby">
      <div role="status">
        {count > 0 && (
          <h2>{count === 1 ? 'One person waits' : `${count}${list.hasMore ? ' or more' : ''} people wait`}</h2>
        )}
      </div>
      {!isEmpty && (
        <RowList
          list={list}
          what="the lobby"
          empty={null}
          more="Show more"
          row={(one) => (
            <div className="row spread">
              <span className="cut">{one.name}</span>
              <LobbyActions participant={one} />
            </div>
          )}
        />
      )}
    </section>
  );
}

/** The newest session of each participant. Loads sessions until each of these participants has one. */
function useSessionsOf(roomId: string, participants: readonly Participant[]) {
  const { items, hasMore, isLong, loadMore, reload } = useApiList('listRoomSessions', { roomId });
  const newest = useMemo(() => {
    const map = new Map<string, Session>();
    for (const session of items) if (!map.has(session.participantId)) map.set(session.participantId, session);
    return map;
  }, [items]);
  const isMissing = participants.some(({ id, state }) => state !== 'waiting' && !newest.has(id));
  useEffect(() => {
    if (hasMore && isMissing && items.length < CONSOLE_LIMITS.sessionsMax) loadMore();
  }, [hasMore, isMissing, items.length, loadMore]);
  return { newest, isLong, reload };
}

function columnsOf(
  sessions: ReadonlyMap<string, Session>,
  open: (id: string) => void,
  isRoomOver: boolean,
): Column<Participant>[] {
  const actions: Column<Participant> = {
    title: 'Actions',
    width: '5.5rem',
    cell: (participant) =>
      participant.state === 'waiting' ? (
        <LobbyActions participant={participant} />
      ) : (
        <RowActions participant={participant} />
      ),
  };
  return [
    {
      title: 'Name',
      width: '2fr',
      cell: ({ id, name }) => (
        <button type="button" className="row-link row-button cut" onClick={() => open(id)}>
          {name}
        </button>
      ),
    },
    {
      title: 'State',
      width: '7rem',
      cell: ({ state }) => <Badge tone={state === 'connected' ? 'good' : 'quiet'}>{STATES[state]}</Badge>,
    },
    {
      title: 'Connection',
      width: '10rem',
      priority: 2,
      cell: ({ id }) => <Quality session={sessions.get(id)} />,
    },
    { title: 'Tracks', width: '6rem', priority: 2, cell: (one) => <TrackIcons participant={one} /> },
    {
      title: 'External id',
      width: '10rem',
      priority: 3,
      cell: ({ externalId }) => externalId ?? <span className="quiet">–</span>,
    },
    { title: 'Joined', width: '8rem', priority: 2, cell: ({ joinedAt }) => <Time value={joinedAt} /> },
    { title: 'Left', width: '8rem', priority: 3, cell: ({ leftAt }) => <Time value={leftAt} /> },
    ...(isRoomOver ? [] : [actions]),
  ];
}

function TrackIcons({ participant: { tracks } }: { participant: Participant }) {
  if (tracks.length === 0) return <span className="quiet">none</span>;
  const names = tracks.map(({ source, muted }) => `${SOURCES[source]}${muted ? ' (muted)' : ''}`).join(', ');
  return (
    <span className="track-icons" role="img" aria-label={names} title={names}>
      {tracks.map(({ trackId, source, muted }) => (
        <span key={trackId} className={muted ? 'muted-track' : ''}>
          <Icon name={source === 'screen_audio' ? 'screen' : source} />
        </span>
      ))}
    </span>
  );
}

const QUALITY_TONES: Record<SessionQuality['worst'], Tone> = { good: 'good', fair: 'warn', poor: 'bad', lost: 'bad' };

function Quality({ session }: { session: Session | undefined }) {
  if (session === undefined) return <span className="quiet">–</span>;
  const { quality } = session;
  if (quality === null) return <span className="quiet">not measured</span>;
  return (
    <span className="row">
      <Badge tone={QUALITY_TONES[quality.worst]}>{quality.worst}</Badge>
      {quality.relay && <span className="quiet">relayed</span>}
    </span>
  );
}
