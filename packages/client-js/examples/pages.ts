import type { Call, Participant } from '@callplane/client-js';

/** Receives the cameras of one page of participants at a time. */
export function pagesOf(call: Call) {
  let page: { participantId: string; trackId: string }[] = [];
  return async (participants: Participant[]) => {
    const cameras = participants.map(({ participantId }) => ({ participantId, trackId: 'camera' }));
    await call.unsubscribe(...page);
    await call.subscribe(...(page = cameras));
  };
}
