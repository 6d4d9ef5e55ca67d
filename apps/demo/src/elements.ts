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

export function make<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className = '', text = '') {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

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
  const line = make('p', '', text);
  element('announcements', HTMLDivElement).append(line);
  setTimeout(() => line.remove(), STAYS_MS);
}

/** A list or form beside the stage. Its button opens it, and Escape closes it; the focus moves into it and back. */
export class Panel {
  /** All panels have the same place. */
  static #open: Panel | undefined;
  readonly #panel: HTMLElement;
  readonly #button: HTMLButtonElement;
  readonly #onOpen: () => HTMLElement;

  constructor(id: 'chat' | 'people', onOpen: () => HTMLElement) {
    this.#panel = element(id, HTMLElement);
    this.#button = button(`toggle-${id}`);
    this.#onOpen = onOpen;
    this.#button.setAttribute('aria-controls', id);
    this.close();
    this.#button.onclick = () => this.#toggle(!this.isOpen);
    this.#panel.onkeydown = ({ key }) => {
      if (key === 'Escape') this.#toggle(false);
    };
  }

  get isOpen(): boolean {
    return !this.#panel.hidden;
  }

  close(): void {
    this.#show(false);
  }

  #toggle(open: boolean): void {
    if (open) Panel.#open?.close();
    this.#show(open);
    (open ? this.#onOpen() : this.#button).focus();
  }

  #show(open: boolean): void {
    this.#panel.hidden = !open;
    this.#button.setAttribute('aria-expanded', String(open));
    Panel.#open = open ? this : undefined;
  }
}
