/**
 * Finds an element of index.html.
 * @throws Error if it is missing or of another type.
 */
export function element<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`index.html has no ${type.name} #${id}`);
  return found;
}

export const button = (id: string) => element(id, HTMLButtonElement);
export const input = (id: string) => element(id, HTMLInputElement);

export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('aria-hidden', 'true');
  svg.append(document.createElementNS('http://www.w3.org/2000/svg', 'use'));
  setIcon(svg, name);
  return svg;
}

export function setIcon(within: Element, name: string): void {
  within.querySelector('use')?.setAttribute('href', `${import.meta.env.BASE_URL}icons.svg#${name}`);
}

const STAYS_MS = 5_000;

/** Announces a visible change to users of screen readers. */
export function announce(text: string): void {
  const line = document.createElement('p');
  line.textContent = text;
  element('announcements', HTMLDivElement).append(line);
  setTimeout(() => line.remove(), STAYS_MS);
}
