import type { Call } from '@callplane/client-js';

// The types of this application's metadata, which the SDK's types follow from here on.
declare module '@callplane/client-js' {
  interface Metadata {
    room: { topic: string };
    participant: { hand?: boolean };
  }
}

/** Raises the hand, and names participants with a raised hand. */
export async function raiseHand(call: Call): Promise<string[]> {
  await call.updateMetadata({ hand: true });
  return [...call.participants.values()].filter(({ metadata }) => metadata.hand === true).map(({ name }) => name);
}

export function topicOf(call: Call): string {
  return call.room.metadata.topic;
}
