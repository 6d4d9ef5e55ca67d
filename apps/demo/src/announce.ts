import { element } from './elements.js';

const STAYS_MS = 5_000;

/** Tells those who do not see the page what those who do can see. */
export function announce(text: string): void {
  const line = document.createElement('p');
  line.textContent = text;
  element('announcements', HTMLDivElement).append(line);
  setTimeout(() => line.remove(), STAYS_MS);
}
