import type { PublishedTrack, QualityLevel, RemoteTrack } from '@callplane/client-js';
import { icon, make } from './elements.js';
import type { Rect } from './layout.js';

const QUALITIES: Record<QualityLevel, string> = {
  good: '',
  fair: 'fair connection',
  poor: 'poor connection',
  lost: 'no media arrives',
};

/** One rectangle of the stage: a participant's camera, or a shared screen. */
export class Tile {
  readonly element = document.createElement('li');
  readonly isScreen: boolean;
  readonly #video = document.createElement('video');
  readonly #muted = icon('microphone-off');
  readonly #quality = make('span', 'quality');
  readonly #name = make('span', 'name');
  readonly #note = make('span', 'visually-hidden');
  readonly #pin = make('button', 'pin');
  readonly #label: string;
  readonly #remarks = new Set<string>();
  #track: RemoteTrack | PublishedTrack | null = null;

  constructor(
    name: string,
    { own = false, screen = false, onPin }: { own?: boolean; screen?: boolean; onPin: () => void },
  ) {
    this.isScreen = screen;
    this.#label = screen ? (own ? 'Your screen' : `${name}’s screen`) : own ? `${name} (you)` : name;
    this.element.className = ['tile', 'dark', own ? 'own' : '', screen ? 'screen' : ''].join(' ');
    this.#video.setAttribute('aria-hidden', 'true');
    this.#video.onloadeddata = () => this.element.classList.remove('dark');
    this.#video.onemptied = () => this.element.classList.add('dark');
    const initial = make('span', 'initial');
    initial.setAttribute('aria-hidden', 'true');
    if (screen) initial.append(icon('screen'));
    else initial.textContent = (/\p{L}|\p{N}/u.exec(name)?.[0] ?? '?').toUpperCase();
    const caption = make('p', 'label');
    this.#name.textContent = this.#label;
    caption.append(this.#muted, this.#name, this.#quality, this.#note);
    this.#pin.type = 'button';
    this.#pin.append(icon('enlarge'));
    this.#pin.onclick = onPin;
    this.element.append(this.#video, initial, caption, this.#pin);
    this.setMuted(false);
  }

  /** Shows the track's picture from its first frame on; null shows none. */
  show(track: RemoteTrack | PublishedTrack | null): void {
    const before = this.#track;
    this.#track = track;
    this.#remark('video paused: slow network', track !== null && 'quality' in track && track.quality === 'paused');
    // Another snapshot of a track has the same functions.
    if (track?.attach === before?.attach) return;
    before?.detach(this.#video);
    this.element.classList.add('dark');
    track?.attach(this.#video);
  }

  setMuted(muted: boolean): void {
    this.#muted.style.display = muted ? '' : 'none';
    this.#note.textContent = muted ? ', muted' : '';
  }

  /** Marks the participant's connection as lost; it may reconnect. */
  setAway(away: boolean): void {
    this.#remark('reconnecting', away);
  }

  #remark(text: string, isOn: boolean): void {
    if (isOn) this.#remarks.add(text);
    else this.#remarks.delete(text);
    this.element.classList.toggle('away', this.#remarks.size > 0);
    this.#name.textContent = [this.#label, ...this.#remarks].join(' · ');
  }

  setQuality(level: QualityLevel | undefined): void {
    this.#quality.textContent = level === undefined ? '' : QUALITIES[level];
  }

  setSpeaking(isSpeaking: boolean): void {
    this.element.classList.toggle('speaking', isSpeaking);
  }

  /** @param rect null: the tile is on another page. Its video stays attached, and the SDK sees that it is hidden. */
  place(rect: Rect | null, isOnStage: boolean): void {
    this.element.hidden = rect === null;
    this.element.classList.toggle('staged', isOnStage);
    this.#pin.setAttribute('aria-pressed', String(isOnStage));
    this.#pin.title = isOnStage ? 'Take off the stage' : 'Show large';
    this.#pin.setAttribute('aria-label', `${this.#pin.title}: ${this.#label}`);
    if (rect === null) return;
    const { style } = this.element;
    style.left = `${rect.left}px`;
    style.top = `${rect.top}px`;
    style.width = `${rect.width}px`;
    style.height = `${rect.height}px`;
  }

  remove(): void {
    this.show(null);
    this.element.remove();
  }
}
