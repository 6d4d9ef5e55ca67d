import { icon } from './elements.js';

/** One rectangle of the grid: a participant with its camera, or a shared screen. */
export class Tile {
  readonly element = document.createElement('li');
  readonly #video = document.createElement('video');
  readonly #muted = icon('microphone-off');
  readonly #name = document.createElement('span');
  readonly #note = document.createElement('span');
  readonly #label: string;
  #shown: MediaStreamTrack | null = null;

  constructor(name: string, { own = false, screen = false } = {}) {
    this.#label = screen ? `${name}’s screen` : own ? `${name} (you)` : name;
    this.element.className = ['tile', 'dark', own ? 'own' : '', screen ? 'screen' : ''].join(' ');
    this.#video.autoplay = true;
    this.#video.playsInline = true;
    // Sound has elements of its own: it goes on while there is no picture.
    this.#video.muted = true;
    this.#video.setAttribute('aria-hidden', 'true');
    this.#video.onloadeddata = () => this.element.classList.remove('dark');
    const initial = document.createElement('span');
    initial.className = 'initial';
    initial.setAttribute('aria-hidden', 'true');
    initial.textContent = (/\p{L}|\p{N}/u.exec(name)?.[0] ?? '?').toUpperCase();
    const label = document.createElement('p');
    label.className = 'label';
    this.#name.className = 'name';
    this.#name.textContent = this.#label;
    this.#note.className = 'visually-hidden';
    this.setMuted(false);
    label.append(this.#muted, this.#name, this.#note);
    this.element.append(this.#video, initial, label);
  }

  /** Shows a picture, from its first frame on; null shows none. */
  show(track: MediaStreamTrack | null): void {
    if (track === this.#shown) return;
    this.#shown = track;
    this.element.classList.add('dark');
    this.#video.srcObject = track === null ? null : new MediaStream([track]);
  }

  setMuted(muted: boolean): void {
    this.#muted.style.display = muted ? '' : 'none';
    this.#note.textContent = muted ? ', muted' : '';
  }

  /** Its connection is lost, and may come back. */
  setAway(away: boolean): void {
    this.element.classList.toggle('away', away);
    this.#name.textContent = away ? `${this.#label} · reconnecting` : this.#label;
  }
}
