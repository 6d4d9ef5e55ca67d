import type { ResultOf } from '@callplane/server/requests';
import { useApi } from '../../api/hooks.js';
import { PlainTable, Section } from '../../components/layout.js';
import { Empty, Loaded } from '../../components/states.js';
import { Badge, Time, type Tone } from '../../components/text.js';
import { countText } from '../../format.js';

type Forward = ResultOf<'readRoomMedia'>['forwards'][number];
const FORWARD_TONES: Record<Forward['state'], Tone> = { opening: 'busy', up: 'good', closing: 'quiet' };

/** The media servers of a room, and what they send to one another. */
export function RoomMediaPanel({ roomId }: { roomId: string }) {
  const query = useApi('readRoomMedia', { roomId });
  return (
    <Loaded query={query} what="the media servers">
      {({ nodes, forwards, forwardCount }) =>
        nodes.length === 0 ? (
          <Empty icon="check" title="This room is on no media server.">
            It gets one with its first participant.
          </Empty>
        ) : (
          <>
            <PlainTable
              label="Media servers of the room"
              head={['Media server', 'State', 'Region', 'Sessions']}
              rows={nodes.map(({ id, region, state, sessions }) => ({
                key: id,
                cells: [
                  id,
                  <Badge tone={state === 'up' ? 'good' : state === 'down' ? 'bad' : 'quiet'}>
                    {state ?? 'unknown'}
                  </Badge>,
                  region ?? <span className="quiet">–</span>,
                  countText(sessions),
                ],
              }))}
            />
            {forwardCount > 0 && (
              <Section title={forwardCount === 1 ? '1 forward' : `${countText(forwardCount)} forwards`}>
                <Forwards forwards={forwards} />
              </Section>
            )}
          </>
        )
      }
    </Loaded>
  );
}

function Forwards({ forwards }: { forwards: readonly Forward[] }) {
  return (
    <PlainTable
      label="Forwards between the media servers"
      head={['From', 'To', 'State', 'Tracks', 'Since', 'Participant']}
      rows={forwards.map(({ participantId, fromNodeId, toNodeId, state, streams, createdAt }, at) => ({
        key: `${participantId} ${toNodeId} ${at}`,
        cells: [
          fromNodeId,
          toNodeId,
          <Badge tone={FORWARD_TONES[state]}>{state}</Badge>,
          streams,
          <Time value={createdAt} />,
          <code>{participantId}</code>,
        ],
      }))}
    />
  );
}
