'use client';
import type { LocalTrack } from '@callplane/client-js';
import { Call, PreJoin } from '@callplane/react';
import { useState } from 'react';

interface Entry {
  url: string;
  token: string;
  tracks: readonly LocalTrack[];
}

/** The devices first, then the call. `fetchToken` asks your backend. */
export function CallPage({ fetchToken }: { fetchToken: (name: string) => Promise<{ url: string; token: string }> }) {
  const [entry, setEntry] = useState<Entry>();
  if (entry !== undefined) return <Call {...entry} onEnd={() => setEntry(undefined)} />;
  return (
    <PreJoin
      title="Join the call"
      connection={() => fetchToken('Test')}
      onJoin={async (tracks, fields) => setEntry({ tracks, ...(await fetchToken(fields['name'] ?? '')) })}
    >
      <input name="name" required className="cp-input" aria-label="Your name" placeholder="Your name" />
    </PreJoin>
  );
}
