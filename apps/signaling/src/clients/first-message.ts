import type { ClientMessage } from '@callplane/protocol';

const FIRST_MESSAGES = ['join', 'resume', 'test'] as const;

/** Whether a client without a session may send the message. */
export function isFirstMessage(
  message: ClientMessage,
): message is Extract<ClientMessage, { type: (typeof FIRST_MESSAGES)[number] }> {
  return FIRST_MESSAGES.some((type) => type === message.type);
}
