import { CallplaneError, type CallplaneErrorCode, type TrackFailure } from '@callplane/client-js';

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

  constructor(
    id: 'chat' | 'people',
    private readonly onOpen: () => HTMLElement,
  ) {
    this.#panel = element(id, HTMLElement);
    this.#button = button(`toggle-${id}`);
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
    (open ? this.onOpen() : this.#button).focus();
  }

  #show(open: boolean): void {
    this.#panel.hidden = !open;
    this.#button.setAttribute('aria-expanded', String(open));
    Panel.#open = open ? this : undefined;
  }
}

/** Texts of errors for the user of this page. The others keep the message of the SDK. */
const TEXTS: Partial<Record<CallplaneErrorCode, string>> = {
  room_ended: 'The room has ended. Join again to open a new one under this name.',
  removed: 'You were removed from the room.',
  superseded: 'You joined from another tab or device. This one has left.',
  capacity: 'The room is full.',
  token_expired: 'Your pass for this room has expired. Join again.',
  connection_lost: 'The connection was lost for too long. Join again.',
  invalid_session: 'The connection was lost for too long. Join again.',
  unreachable: 'The server does not answer. Check your connection, and try again in a moment.',
  too_many_attempts: 'Too many attempts. Wait a few seconds, then join again.',
  drain: 'The server is restarting. Join again in a moment.',
  unavailable: 'The server is busy. Try again in a moment.',
  media_unavailable: 'Audio and video are not available at the moment. The call and the chat continue without them.',
  permission_denied: 'You may not do that in this room.',
  rate_limited: 'That was too often. Wait a moment.',
};

/** Devices that could not be opened, while others could. */
export function readableFailures(failed: readonly TrackFailure[]): string {
  return failed.map(({ source, code, message }) => readable(new CallplaneError(code, message), source)).join(' ');
}

/** @param what the device that was requested, if any */
export function readable(error: unknown, what = 'camera and microphone'): string {
  if (!(error instanceof CallplaneError)) return error instanceof Error ? error.message : String(error);
  if (error.code === 'device_permission_denied') return allowText(what);
  return TEXTS[error.code] ?? error.message;
}

/** Where browsers hide the switch. */
function allowText(what: string): string {
  const { userAgent } = navigator;
  if (/iPhone|iPad/.test(userAgent)) return `Allow the ${what} in Settings → Apps → Safari, then reload the page.`;
  if (userAgent.includes('Firefox')) return `Allow the ${what} with the icon left of the address in Firefox.`;
  if (userAgent.includes('Edg/')) return `Allow the ${what} with the lock left of the address in Edge.`;
  if (userAgent.includes('Chrome')) return `Allow the ${what} with the icon left of the address in Chrome.`;
  return `Allow the ${what} in Safari → Settings → Websites.`;
}
