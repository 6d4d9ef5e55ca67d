import { useStreamState } from './live.js';
import type { StreamState } from './stream.js';

const TEXTS: Record<Exclude<StreamState, 'off'>, string> = {
  connecting: 'Connecting',
  live: 'Live',
  reconnecting: 'Reconnecting',
};

/** Whether what is on the page follows the changes. */
export function LiveState() {
  const state = useStreamState();
  return (
    <span className="live" role="status" data-state={state}>
      {state !== 'off' && TEXTS[state]}
    </span>
  );
}
