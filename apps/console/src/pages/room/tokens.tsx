import type { ResultOf, Room } from '@callplane/server/requests';
import { useApiList } from '../../api/hooks.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Badge, Time, type Tone } from '../../components/text.js';

type Token = ResultOf<'listTokens'>['data'][number];
const TONES: Record<Token['state'], Tone> = {
  unused: 'busy',
  used: 'good',
  expired: 'quiet',
  room_ended: 'quiet',
  revoked: 'bad',
};

const COLUMNS: readonly Column<Token>[] = [
  { title: 'Participant', width: '2fr', cell: ({ participantName }) => participantName },
  { title: 'State', width: '7rem', cell: ({ state }) => <Badge tone={TONES[state]}>{state.replace('_', ' ')}</Badge> },
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
export function Tokens({ room }: { room: Room }) {
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
