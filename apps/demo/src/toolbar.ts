import { CallplaneError, type Call, type DeviceOptions, type TrackSource } from '@callplane/client-js';
import { announce } from './announce.js';
import { button, setIcon } from './elements.js';

interface Context {
  call: Call;
  /** After a change of what is sent. */
  onChange: () => void;
  onProblem: (text: string) => void;
}

/** Microphone, camera and screen: one button each, which says what pressing it does. */
export class Toolbar {
  readonly #context: Context;
  /** One thing at a time for each source: a second press must not overtake the first. */
  readonly #busy = new Set<TrackSource>();

  constructor(context: Context) {
    this.#context = context;
    const { call } = context;
    button('toggle-audio').onclick = () => void this.toggleDevice('microphone');
    button('toggle-video').onclick = () => void this.toggleDevice('camera');
    button('toggle-screen').onclick = () => void this.toggleScreen();
    button('toggle-audio').disabled = !call.permissions.includes('audio:publish');
    button('toggle-video').disabled = !call.permissions.includes('video:publish');
    button('toggle-screen').disabled = !call.permissions.includes('screen:publish');
    for (const event of ['localTrackPublished', 'localTrackUnpublished'] as const) call.on(event, () => this.show());
    this.show();
  }

  /** Publishes at first; then mutes and unmutes. */
  toggleDevice(source: 'microphone' | 'camera'): Promise<void> {
    return this.#once(source, async () => {
      const { call } = this.#context;
      const track = this.#track(source);
      if (track === undefined) await call.publish(source === 'microphone' ? { audio: true } : { video: VIDEO });
      else await (track.muted ? call.unmute(track.trackId) : call.mute(track.trackId));
      const what = source === 'microphone' ? 'Microphone' : 'Camera';
      announce(`${what} ${this.#track(source)?.muted === false ? 'on' : 'off'}`);
    });
  }

  toggleScreen(): Promise<void> {
    return this.#once('screen', async () => {
      const { call } = this.#context;
      const shared = [this.#track('screen'), this.#track('screen_audio')];
      if (shared[0] === undefined) await call.shareScreen();
      else for (const track of shared) if (track !== undefined) await call.unpublish(track.trackId);
      announce(this.#track('screen') === undefined ? 'You stopped sharing' : 'You share your screen');
    });
  }

  /** Both devices at once, at the beginning. */
  begin(audio: boolean, video: boolean): Promise<void> {
    if (!audio && !video) return Promise.resolve();
    const devices: DeviceOptions = { audio, video: video && VIDEO };
    return this.#once(audio ? 'microphone' : 'camera', async () => {
      await this.#context.call.publish(devices);
    });
  }

  show(): void {
    const microphone = this.#track('microphone')?.muted === false;
    const camera = this.#track('camera')?.muted === false;
    const screen = this.#track('screen') !== undefined;
    face('toggle-audio', microphone ? 'Mute' : 'Unmute', microphone ? 'microphone' : 'microphone-off', !microphone);
    face('toggle-video', camera ? 'Stop camera' : 'Start camera', camera ? 'camera' : 'camera-off', !camera);
    face('toggle-screen', screen ? 'Stop sharing' : 'Share screen', 'screen', false);
    button('toggle-screen').setAttribute('aria-pressed', String(screen));
    this.#context.onChange();
  }

  #track(source: TrackSource) {
    return [...this.#context.call.tracks.values()].find((track) => track.source === source);
  }

  async #once(source: TrackSource, task: () => Promise<void>): Promise<void> {
    if (this.#busy.has(source)) return;
    this.#busy.add(source);
    try {
      await task();
    } catch (error) {
      this.#context.onProblem(error instanceof CallplaneError ? error.message : String(error));
    } finally {
      this.#busy.delete(source);
      this.show();
    }
  }
}

const VIDEO: MediaTrackConstraints = { width: { ideal: 640 }, height: { ideal: 360 }, frameRate: { ideal: 24 } };

function face(id: string, text: string, iconName: string, off: boolean): void {
  const it = button(id);
  const label = it.querySelector('span');
  if (label !== null && label.textContent !== text) label.textContent = text;
  setIcon(it, iconName);
  it.classList.toggle('off', off && !it.disabled);
}
