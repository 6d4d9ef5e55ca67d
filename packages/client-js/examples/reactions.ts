import type { Call } from '@callplane/client-js';

/** Shows reactions of others. */
export function reactions(call: Call, show: (name: string, emoji: string) => void) {
  call.on('message', ({ participant, data }) => {
    if (participant !== undefined && typeof data === 'string') show(participant.name, data.slice(0, 8));
  });
  return (emoji: string) => call.send(emoji);
}
