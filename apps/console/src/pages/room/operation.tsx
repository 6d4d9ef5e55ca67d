import type { RuntimeOperation } from '@callplane/server/requests';
import { asApiError } from '../../api/api-error.js';
import { useApi } from '../../api/hooks.js';
import { Facts } from '../../components/layout.js';
import { Empty, Loaded } from '../../components/states.js';
import { Badge, Id, Time, type Tone } from '../../components/text.js';

const TONES: Record<RuntimeOperation['status'], Tone> = { pending: 'busy', completed: 'good', failed: 'bad' };

/** Attempts of an operation are no changes of the room, so the stream does not name them. */
function useRoomOperation(roomId: string) {
  return useApi('readRoomOperation', { roomId }, { everyMs: (answer) => answer?.status === 'pending' && 2_000 });
}

export function RoomOperation({ roomId }: { roomId: string }) {
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

export function OperationPanel({ roomId }: { roomId: string }) {
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
