import type { Call, Participant } from '@callplane/client-js';

/** Receives the cameras of one page of participants at a time. */
export function pagesOf(call: Call) {
  let page: { participantId: string; trackId: string }[] = [];
  return async (participants: Participant[]) => {
    if (page.length > 0) await call.unsubscribeTracks(...page);
    page = participants.map(({ participantId }) => ({ participantId, trackId: 'camera' }));
    if (page.length > 0) await call.subscribeTracks(...page);
  };
}
