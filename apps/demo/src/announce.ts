import { element } from './elements.js';

const STAYS_MS = 5_000;

/** Announces a visible change to users of screen readers. */
export function announce(text: string): void {
  const line = document.createElement('p');
  line.textContent = text;
  element('announcements', HTMLDivElement).append(line);
  setTimeout(() => line.remove(), STAYS_MS);
}
