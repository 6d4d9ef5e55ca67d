import { useSyncExternalStore } from 'react';

/** The newest comes last. The browser makes everything outside of it inert, and shows it below. */
let open: readonly HTMLElement[] = [];
const listeners = new Set<() => void>();

function change(next: readonly HTMLElement[]): void {
  open = next;
  for (const listener of listeners) listener();
}

/** @returns a function that takes the dialog away again */
export function addOpenDialog(dialog: HTMLElement): () => void {
  change([...open, dialog]);
  return () => change(open.filter((one) => one !== dialog));
}

export function useNewestDialog(): HTMLElement | undefined {
  return useSyncExternalStore(subscribe, () => open.at(-1));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
