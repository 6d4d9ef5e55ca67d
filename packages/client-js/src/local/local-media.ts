import { CallplaneError } from '../errors.js';
import type { Publisher } from '../peers/publisher.js';
import type { Platform } from '../platform.js';
import type { TrackSource } from '../protocol.generated.js';
import { captureDevices, captureScreen, type Captured } from './capture.js';
import { freeTrackId, PERMISSION_OF, SIMULCAST_ENCODINGS, type LocalTrack } from './local-track.js';

export interface DeviceOptions {
  /** The microphone, and how. */
  audio?: boolean | MediaTrackConstraints;
  /** The camera, and how. */
  video?: boolean | MediaTrackConstraints;
  /** Whether to send the camera in three sizes, so that receivers can choose; default false. */
  simulcast?: boolean;
}

export interface TrackOptions {
  source: TrackSource;
  /** Default: the source's name, with a number when it is taken. */
  trackId?: string;
  muted?: boolean;
  simulcast?: boolean;
}

export interface LocalMediaContext {
  platform: Platform;
  publisher: Publisher;
  permissions: () => readonly string[];
  onPublished: (track: LocalTrack) => void;
  onUnpublished: (track: LocalTrack) => void;
}

/** Devices and screens of this participant: opened, published, muted and closed again. */
export class LocalMedia {
  readonly #context: LocalMediaContext;

  constructor(context: LocalMediaContext) {
    this.#context = context;
  }

  async publishDevices({ audio = false, video = false, simulcast = false }: DeviceOptions): Promise<LocalTrack[]> {
    if (audio === false && video === false) throw new CallplaneError('invalid_argument', 'Neither audio nor video.');
    // Before the person is asked for the device.
    if (audio !== false) this.#assertPermitted('microphone');
    if (video !== false) this.#assertPermitted('camera');
    const captured = await captureDevices(this.#context.platform, { audio, video });
    return this.#publish(captured, { simulcast }, true);
  }

  async publishScreen(options: DisplayMediaStreamOptions): Promise<LocalTrack[]> {
    this.#assertPermitted('screen');
    return this.#publish(await captureScreen(this.#context.platform, options), {}, true);
  }

  async publishTrack(mediaStreamTrack: MediaStreamTrack, options: TrackOptions): Promise<LocalTrack[]> {
    this.#assertPermitted(options.source);
    return this.#publish([{ source: options.source, mediaStreamTrack }], options, false);
  }

  async unpublish(trackId: string | undefined): Promise<void> {
    const { publisher } = this.#context;
    const all = [...publisher.tracks.values()];
    const tracks = all.filter((track) => trackId === undefined || track.trackId === trackId);
    for (const track of tracks) this.forget(track);
    if (tracks.length > 0) await publisher.unpublish(tracks);
  }

  async setMuted(trackId: string, muted: boolean): Promise<void> {
    const track = this.#context.publisher.tracks.get(trackId);
    if (track === undefined) throw new CallplaneError('not_found', `"${trackId}" is not published.`);
    await this.#context.publisher.setMuted(track, muted);
  }

  /** A track that is published no more. */
  forget(track: LocalTrack): void {
    stop(track);
    this.#context.onUnpublished(track);
  }

  close(): void {
    for (const track of this.#context.publisher.tracks.values()) stop(track);
    this.#context.publisher.close();
  }

  async #publish(
    captured: Captured[],
    { trackId, muted = false, simulcast = false }: Partial<TrackOptions>,
    isOwn: boolean,
  ): Promise<LocalTrack[]> {
    const { publisher, onPublished } = this.#context;
    const taken = new Set(publisher.tracks.keys());
    const tracks = captured.map(({ source, mediaStreamTrack }): LocalTrack => {
      const id = trackId ?? freeTrackId(source, (one) => taken.has(one));
      taken.add(id);
      const kind = mediaStreamTrack.kind as LocalTrack['kind'];
      const encodings = simulcast && kind === 'video' ? SIMULCAST_ENCODINGS : undefined;
      if (muted) mediaStreamTrack.enabled = false;
      return { trackId: id, kind, source, mediaStreamTrack, muted, encodings, isOwn };
    });
    try {
      await publisher.publish(tracks);
    } catch (error) {
      tracks.forEach(stop);
      throw error;
    }
    for (const track of tracks) {
      // The device was unplugged, or the person has ended the sharing in the browser's own bar.
      track.mediaStreamTrack.addEventListener('ended', () => {
        if (publisher.tracks.get(track.trackId) === track) void this.unpublish(track.trackId).catch(() => undefined);
      });
      onPublished(track);
    }
    return tracks;
  }

  #assertPermitted(source: TrackSource): void {
    const permission = PERMISSION_OF[source];
    if (this.#context.permissions().includes(permission)) return;
    throw new CallplaneError('permission_denied', `The token does not permit ${permission}.`);
  }
}

/** Closes the device, if it was the SDK that opened it. */
function stop(track: LocalTrack): void {
  if (track.isOwn) track.mediaStreamTrack.stop();
}
