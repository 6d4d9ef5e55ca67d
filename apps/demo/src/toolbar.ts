import { CallplaneError, isSupported, type Call, type LocalTrack, type TrackSource } from '@callplane/client-js';
import { announce, button, setIcon, readable } from './elements.js';
import { VIDEO } from './preview.js';

/** One button each for microphone, camera and screen; its label names the effect of a press. */
export class Toolbar {
  /** Sources with an operation in progress: a second press must not overtake the first. */
  readonly #busy = new Set<TrackSource>();
  /** The request of a press during an operation. The label may already show the new state then. */
  readonly #next = new Map<TrackSource, () => Promise<void>>();

  constructor(
    private readonly call: Call,
    private readonly onProblem: (text: string) => void,
  ) {
    button('toggle-audio').onclick = () => void this.toggleDevice('microphone');
    button('toggle-video').onclick = () => void this.toggleDevice('camera');
    button('toggle-screen').onclick = () => void this.toggleScreen();
    button('toggle-audio').disabled = !call.permissions.includes('audio:publish');
    button('toggle-video').disabled = !call.permissions.includes('video:publish');
    button('toggle-screen').disabled = !call.permissions.includes('screen:publish');
    // Browsers of phones share no screens.
    button('toggle-screen').hidden = !isSupported('screenShare');
    call.subscribe(() => this.show());
    call.on('deviceFallback', ({ source }) => onProblem(`The chosen ${source} is gone. The default one is used.`));
    this.show();
  }

  /**
   * Publishes on the first press; later presses mute and unmute. A press during an operation counts when it has ended;
   * two of them cancel each other out.
   */
  toggleDevice(source: 'microphone' | 'camera'): Promise<void> {
    if (this.#busy.has(source)) {
      if (!this.#next.delete(source)) this.#next.set(source, () => this.toggleDevice(source));
      return Promise.resolve();
    }
    return this.#once(source, async () => {
      const call = this.call;
      const track = this.#track(source);
      if (track === undefined) await call.publish(source === 'microphone' ? { audio: true } : { video: VIDEO });
      else await (track.muted ? call.unmute(track.trackId) : call.mute(track.trackId));
      const what = source === 'microphone' ? 'Microphone' : 'Camera';
      announce(`${what} ${this.#track(source)?.muted === false ? 'on' : 'off'}`);
    });
  }

  toggleScreen(): Promise<void> {
    return this.#once('screen', async () => {
      if (this.#track('screen') === undefined) await this.call.shareScreen();
      else await this.call.stopScreenShare();
      announce(this.#track('screen') === undefined ? 'You stopped sharing' : 'You share your screen');
    });
  }

  async begin(tracks: LocalTrack[]): Promise<void> {
    const [first] = tracks;
    if (first === undefined) return;
    if (this.call.mediaState === 'down') for (const track of tracks) track.stop();
    else await this.#once(first.source, async () => void (await this.call.publish(tracks)));
  }

  show(): void {
    const microphone = this.#track('microphone')?.muted === false;
    const camera = this.#track('camera')?.muted === false;
    const screen = this.#track('screen') !== undefined;
    face('toggle-audio', microphone ? 'Mute' : 'Unmute', microphone ? 'microphone' : 'microphone-off', !microphone);
    face('toggle-video', camera ? 'Stop camera' : 'Start camera', camera ? 'camera' : 'camera-off', !camera);
    face('toggle-screen', screen ? 'Stop sharing' : 'Share screen', 'screen', false);
    button('toggle-screen').setAttribute('aria-pressed', String(screen));
  }

  #track(source: TrackSource) {
    return [...this.call.tracks.values()].find((track) => track.source === source);
  }

  async #once(source: TrackSource, task: () => Promise<void>): Promise<void> {
    if (this.#busy.has(source)) return;
    this.#busy.add(source);
    try {
      await task();
    } catch (error) {
      const isDenied = error instanceof CallplaneError && error.code === 'device_permission_denied';
      // The user closed the browser's dialog, which needs no message.
      if (source === 'screen' && isDenied) return;
      this.onProblem(readable(error, source));
    } finally {
      this.#busy.delete(source);
      this.show();
      const next = this.#next.get(source);
      this.#next.delete(source);
      void next?.();
    }
  }
}

function face(id: string, text: string, iconName: string, off: boolean): void {
  const it = button(id);
  const label = it.querySelector('span');
  if (label !== null && label.textContent !== text) label.textContent = text;
  setIcon(it, iconName);
  it.classList.toggle('off', off && !it.disabled);
}
