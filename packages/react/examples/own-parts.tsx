import { CallProvider, Tile, useConnectionState, useLocalMedia, useParticipants } from '@callplane/react';

/** Your own layout: hooks for the state, components for the parts that you keep. */
export function OwnCall({ url, token }: { url: string; token: string }) {
  return (
    <CallProvider url={url} token={token} audio video>
      <Room />
    </CallProvider>
  );
}

function Room() {
  const { state } = useConnectionState();
  const ids = useParticipants(({ participantId }) => participantId);
  const { isOn, isPending, toggle } = useLocalMedia('microphone');
  return (
    <main data-state={state}>
      <Tile />
      {ids.map((id) => (
        <Tile key={id} participantId={id} />
      ))}
      <button disabled={isPending} onClick={() => void toggle()}>
        {isOn ? 'Mute' : 'Unmute'}
      </button>
    </main>
  );
}
