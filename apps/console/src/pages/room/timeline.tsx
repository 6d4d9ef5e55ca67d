import type { ResultOf } from '@callplane/server/requests';
import { useState } from 'react';
import { useApiList } from '../../api/hooks.js';
import { Dialog } from '../../components/dialog.js';
import { Facts } from '../../components/layout.js';
import { ListTable, type Column } from '../../components/list-table.js';
import { Empty } from '../../components/states.js';
import { Badge, Id, Json, Time, type Tone } from '../../components/text.js';
import { SOURCES } from './session-parts.js';

type Event = ResultOf<'listEvents'>['data'][number];

export function Timeline({ roomId }: { roomId: string }) {
  const [openId, setOpenId] = useState<string>();
  const list = useApiList('listEvents', { roomId });
  const opened = list.items.find(({ id }) => id === openId);
  const columns: readonly Column<Event>[] = [
    { title: '#', width: '2.5rem', cell: ({ sequence }) => sequence },
    {
      title: 'Event',
      width: '3fr',
      cell: (event) => (
        <button type="button" className="row-link row-button cut" onClick={() => setOpenId(event.id)}>
          {summaryOf(event)}
        </button>
      ),
    },
    {
      title: 'Type',
      width: '12rem',
      priority: 2,
      cell: ({ type }) => <Badge tone={toneOf(type)}>{type}</Badge>,
    },
    { title: 'Time', width: '14.5rem', priority: 2, cell: ({ createdAt }) => <Time value={createdAt} full /> },
  ];
  return (
    <>
      <ListTable
        label="Events"
        list={list}
        columns={columns}
        empty={<Empty icon="overview" title="This room has no events yet." />}
      />
      {opened !== undefined && (
        <Dialog side title={summaryOf(opened)} onClose={() => setOpenId(undefined)}>
          <Facts
            facts={[
              ['Type', <code>{opened.type}</code>],
              ['Sequence', opened.sequence ?? 'none'],
              ['Time', <Time value={opened.createdAt} full />],
              ['Identifier', <Id value={opened.id} label="event's identifier" />],
            ]}
          />
          <Json value={opened} label="The event, as webhooks send it" />
        </Dialog>
      )}
    </>
  );
}

function toneOf(type: Event['type']): Tone {
  if (type === 'operation.failed' || type === 'webhook.disabled') return 'bad';
  if (type.startsWith('participant.')) return 'busy';
  return type.startsWith('track.') ? 'quiet' : 'good';
}

function summaryOf(event: Event): string {
  switch (event.type) {
    case 'room.created':
      return 'The room was created';
    case 'room.started':
      return 'The room started with its first participant';
    case 'room.updated':
      return 'The room was changed';
    case 'room.ended':
      return 'The room ended';
    case 'participant.joined':
      return `${event.data.participant.name} joined`;
    case 'participant.waiting':
      return `${event.data.participant.name} waits in the lobby`;
    case 'participant.admitted':
      return `${event.data.participant.name} was let in`;
    case 'participant.left':
      return `${event.data.participant.name} left`;
    case 'participant.updated':
      return `${event.data.participant.name} was changed`;
    case 'track.published':
      return `${event.data.participant.name} published the ${SOURCES[event.data.track.source]}`;
    case 'track.unpublished':
      return `${event.data.participant.name} unpublished the ${SOURCES[event.data.track.source]}`;
    case 'track.muted':
      return `The ${SOURCES[event.data.track.source]} of ${event.data.participant.name} was muted`;
    case 'operation.failed':
      return 'A clean-up failed';
    default:
      return event.type;
  }
}
