import { createLocalTracks, isSupported, type DeviceKind, type LocalTrack } from '@callplane/client-js';
import { pickDevices } from './settings.js';
import { element, input } from './elements.js';
import { readable } from './problems.js';

/** Moderate: a laptop encodes it and shows a full page of others. */
export const VIDEO: MediaTrackConstraints = { width: { ideal: 640 }, height: { ideal: 360 }, frameRate: { ideal: 24 } };

type Source = 'microphone' | 'camera';
const SWITCH = { microphone: 'with-audio', camera: 'with-video' } as const;
const KIND: Record<Source, DeviceKind> = { microphone: 'audioinput', camera: 'videoinput' };

const sourceOf = (kind: DeviceKind): Source => (kind === 'audioinput' ? 'microphone' : 'camera');

/** The picture of the user's camera before the call, and the devices to begin with. */
export class Preview {
  readonly #tracks = new Map<Source, LocalTrack>();
  readonly #video = element('preview-video', HTMLVideoElement);
  readonly #picker = pickDevices(
    'lobby',
    (kind) => this.#tracks.get(sourceOf(kind))?.deviceId,
    (kind, deviceId) => {
      const source = sourceOf(kind);
      this.#chosen.set(source, deviceId);
      this.#close(source);
      this.#open(source);
    },
  );
  #chosen = new Map<Source, string>();
  #opening: Promise<void> = Promise.resolve();

  constructor() {
    for (const source of ['microphone', 'camera'] as const) {
      input(SWITCH[source]).onchange = () => this.#open(source);
    }
    element('preview', HTMLElement).hidden = !isSupported('devices');
    // One after another: the browser asks for both at once only in one request, and one may be missing.
    this.#open('camera');
    this.#open('microphone');
  }

  /** Ends the preview. @returns its tracks, which are open and not published. */
  async take(): Promise<LocalTrack[]> {
    await this.#opening;
    const tracks = [...this.#tracks.values()];
    this.#tracks.clear();
    for (const track of tracks) track.detach();
    this.#picker.close();
    return tracks;
  }

  #open(source: Source): void {
    this.#opening = this.#opening.then(async () => {
      if (!input(SWITCH[source]).checked) this.#close(source);
      else if (!this.#tracks.has(source)) await this.#begin(source);
      this.#render();
      await this.#picker.fill();
    });
  }

  async #begin(source: Source): Promise<void> {
    const problem = element('preview-problem', HTMLParagraphElement);
    const deviceId = this.#chosen.get(source);
    const wanted = deviceId === undefined ? {} : { deviceId: { exact: deviceId } };
    try {
      const options = source === 'camera' ? { video: { ...VIDEO, ...wanted } } : { audio: wanted };
      const [track] = await createLocalTracks(options);
      if (track !== undefined) this.#tracks.set(source, track);
      problem.textContent = '';
    } catch (error) {
      problem.textContent = `${readable(error, source)} You can join without it.`;
      input(SWITCH[source]).checked = false;
    }
  }

  #close(source: Source): void {
    const track = this.#tracks.get(source);
    track?.detach();
    track?.stop();
    this.#tracks.delete(source);
  }

  #render(): void {
    const camera = this.#tracks.get('camera');
    camera?.attach(this.#video);
    element('preview', HTMLElement).classList.toggle('dark', camera === undefined);
    for (const source of ['microphone', 'camera'] as const) {
      element(`lobby-${KIND[source]}`, HTMLSelectElement).disabled = !this.#tracks.has(source);
    }
  }
}
