import type { Room } from '@callplane/server/requests';
import { useApiAction } from '../../api/hooks.js';
import { useConfirm } from '../../components/confirm.js';

/** Asks first, and says what will happen. */
export function useEndRoom(room: Room): { ask: () => void; isPending: boolean } {
  const confirm = useConfirm();
  const end = useApiAction('endRoom', {
    done: (operation) =>
      operation === undefined ? 'The room has ended.' : 'The room is ending. Its operation shows the progress.',
  });
  const ask = async () => {
    const agrees = await confirm({
      title: `End “${room.name}”?`,
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
    if (agrees) end.mutate({ roomId: room.id });
  };
  return { ask: () => void ask(), isPending: end.isPending };
}
