/** The cookie of the session belongs to all tabs of the browser. A channel does not deliver to itself. */
const channel = new BroadcastChannel('callplane:session');

/** Reports a sign-in or a sign-out to the other tabs. */
export function announceSession(): void {
  channel.postMessage(null);
}

/** @returns a function that removes the listener */
export function onSessionOfOtherTab(listener: () => void): () => void {
  channel.addEventListener('message', listener);
  return () => channel.removeEventListener('message', listener);
}
