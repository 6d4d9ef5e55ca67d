import { element, input } from './elements.js';

/** Single-key shortcuts for the buttons. Inactive while the user types, and if the user has switched them off. */
export function listenForShortcuts(actions: Record<string, () => void>): () => void {
  const help = element('help', HTMLDialogElement);
  const onKey = (event: KeyboardEvent) => {
    const writes = event.target instanceof HTMLInputElement && event.target.type !== 'checkbox';
    if (writes || event.ctrlKey || event.altKey || event.metaKey || event.repeat || help.open) return;
    if (!input('use-shortcuts').checked) return;
    const action = actions[event.key.toLowerCase()];
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
  document.addEventListener('keydown', onKey);
  return () => document.removeEventListener('keydown', onKey);
}
