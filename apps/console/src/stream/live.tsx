import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import { callApi } from '../api/call.js';
import { useSession, type Scope } from '../session/session.js';
import { Store } from '../store.js';
import { type Kind, Refresher } from './refresher.js';
import { openStream, type StreamState } from './stream.js';

const scopeOf = (kind: Kind): Scope => (kind === 'participants' ? 'participants:read' : 'rooms:read');

export const streamState = new Store<StreamState>('off');

/**
 * Keeps a page up to date: opens the page's one stream, and reads outdated data again.
 * @param kinds the kinds of changes that the page shows; kinds without their scope are left out
 */
export function useLive(kinds: readonly Kind[], roomId?: string): void {
  const client = useQueryClient();
  const { scopes } = useSession();
  const readable = useMemo(() => kinds.filter((kind) => scopes.includes(scopeOf(kind))), [kinds.join(), scopes]);
  useEffect(() => {
    if (readable.length === 0) return undefined;
    const refresher = new Refresher(client);
    const close = openStream(
      { kinds: readable, roomId },
      {
        onState: (state) => streamState.set(state),
        onChanges: (changes) => refresher.onChanges(changes),
        onGap: () => refresher.onGap(),
        // Answers 401 if the session has ended, which leads to the sign-in page.
        onRefused: () => void callApi('readContext', {}).catch(() => undefined),
      },
    );
    return () => {
      close();
      refresher.close();
    };
  }, [client, readable, roomId]);
}
