import { createLocalTracks, isSupported, type DeviceKind, type LocalTrack } from '@callplane/client-js';
import { pickDevices } from './settings.js';
import { element, input, readable, readableFailures } from './elements.js';

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
    // The browser asks for both at once.
    this.#open('microphone', 'camera');
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

  #open(...sources: Source[]): void {
    this.#opening = this.#opening.then(async () => {
      const isWanted = (source: Source) => input(SWITCH[source]).checked;
      for (const source of sources) if (!isWanted(source)) this.#close(source);
      const missing = sources.filter((source) => isWanted(source) && !this.#tracks.has(source));
      if (missing.length > 0) await this.#begin(missing);
      this.#render();
      await this.#picker.fill();
    });
  }

  async #begin(sources: Source[]): Promise<void> {
    const wanted = (source: Source, constraints: MediaTrackConstraints = {}) => {
      const deviceId = this.#chosen.get(source);
      if (!sources.includes(source)) return false;
      return deviceId === undefined ? constraints : { ...constraints, deviceId: { exact: deviceId } };
    };
    const options = { audio: wanted('microphone'), video: wanted('camera', VIDEO) };
    const problem = await createLocalTracks(options).then(
      ({ tracks, failed }) => {
        for (const track of tracks) this.#tracks.set(track.source as Source, track);
        return readableFailures(failed);
      },
      (error: unknown) => readable(error, sources.join(' and ')),
    );
    const shown = problem === '' ? '' : `${problem} You can join without it.`;
    element('preview-problem', HTMLParagraphElement).textContent = shown;
    for (const source of sources) input(SWITCH[source]).checked = this.#tracks.has(source);
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
