import { CONSOLE_LIMITS } from '../limits.js';
import type { Change, Kind } from './refresher.js';

export type StreamState = 'off' | 'connecting' | 'live' | 'reconnecting';

export interface StreamListener {
  onState: (state: StreamState) => void;
  onChanges: (changes: Change[]) => void;
  onGap: () => void;
  /** The API refused the stream; the session may have ended. */
  onRefused: () => void;
}

const FIRST_PAUSE_MS = 1_000;
/** The share of a pause that is random, so that the tabs of all readers do not come back to a new API together. */
const JITTER = 0.5;

/**
 * Reads `GET /v1/stream`. The browser connects again by itself, and names the position it has reached. It gives up after
 * an answer other than 200: then this code connects again, with growing pauses.
 */
export function openStream(
  { kinds, roomId }: { kinds: readonly Kind[]; roomId?: string | undefined },
  listener: StreamListener,
  random: () => number = Math.random,
): () => void {
  const query = new URLSearchParams({ kinds: kinds.join(',') });
  if (roomId !== undefined) query.set('roomId', roomId);
  let position = '';
  let pauseMs = FIRST_PAUSE_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let source: EventSource | undefined;
  let isClosed = false;

  const connect = () => {
    if (position !== '') query.set('after', position);
    const current = new EventSource(`/v1/stream?${query.toString()}`);
    source = current;
    const on = (name: string, handle: (data: unknown) => void) => {
      current.addEventListener(name, (event: MessageEvent<string>) => {
        if (isClosed) return;
        if (event.lastEventId !== '') position = event.lastEventId;
        handle(JSON.parse(event.data));
      });
    };
    on('ready', () => {
      pauseMs = FIRST_PAUSE_MS;
      listener.onState('live');
      // The page was read before the stream began.
      listener.onGap();
    });
    on('changes', (data) => listener.onChanges((data as { changes: Change[] }).changes));
    on('reset', () => listener.onGap());
    on('end', (data) => {
      current.close();
      // A stream has a greatest age. The next one continues at its position, so the page has nothing to report.
      if ((data as { reason: string }).reason === 'max_age') {
        connect();
        return;
      }
      listener.onState('reconnecting');
      connectLater();
    });
    current.addEventListener('error', () => {
      if (isClosed) return;
      listener.onState('reconnecting');
      if (current.readyState !== EventSource.CLOSED) return;
      listener.onRefused();
      connectLater();
    });
  };
  const connectLater = () => {
    timer = setTimeout(connect, pauseMs * (1 - JITTER * random()));
    pauseMs = Math.min(pauseMs * 2, CONSOLE_LIMITS.streamPauseMaxMs);
  };
  listener.onState('connecting');
  connect();
  return () => {
    isClosed = true;
    clearTimeout(timer);
    source?.close();
    listener.onState('off');
  };
}
