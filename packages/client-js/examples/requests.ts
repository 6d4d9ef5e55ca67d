import { CallplaneError, type Call } from '@callplane/client-js';

/** Lets the others clear this page's board, if its user agrees. */
export function shareBoard(call: Call, clear: (layer: string) => number) {
  return call.handle('board.clear', ({ layer }: { layer: string }, { participant }) => {
    if (!confirm(`Let ${participant?.name} clear the board?`)) throw new Error('Not now.');
    return { cleared: clear(layer) };
  });
}

/** Clears the board of another participant. */
export async function clearBoard(call: Call, participantId: string) {
  try {
    return await call.request<{ cleared: number }>(
      participantId,
      'board.clear',
      { layer: 'ink' },
      { timeoutMs: 30_000 },
    );
  } catch (error) {
    // The other page has no board, or its user has refused.
    if (error instanceof CallplaneError && ['no_handler', 'handler_failed'].includes(error.code)) return null;
    throw error;
  }
}
