/** The API's answer 401 to any request ends the session of all pages. */
const target = new EventTarget();

export function sessionEnded(): void {
  target.dispatchEvent(new Event('ended'));
}

/** @returns a function that removes the listener */
export function onSessionEnded(listener: () => void): () => void {
  target.addEventListener('ended', listener);
  return () => target.removeEventListener('ended', listener);
}
