import { CallplaneError, hasCode, invalidArgument } from '../errors.js';
import type { Publisher } from '../peers/publisher.js';
import type { Platform } from '../platform.js';
import type { TrackSource } from '../protocol.generated.js';
import { reopen } from './create-tracks.js';
import type { LocalTrack } from './local-track.js';

export interface DeviceChangesContext {
  platform: Platform;
  publisher: Publisher;
  emit: (name: 'localTrackUpdated' | 'deviceFallback', track: LocalTrack) => void;
  onProblem: (error: CallplaneError) => void;
  /** A published track has got other media. */
  onMedia: (track: LocalTrack) => void;
}

/** Mutes published tracks and puts other media in their place. Each track's changes run one after another. */
export class DeviceChanges {
  readonly chosen = new Map<TrackSource, string>();
  /** Tracks that the server has muted, and this participant has not touched since. */
  readonly #mutedByServer = new Set<LocalTrack>();
  /** Mutes and unmutes of this participant that the gateway has not confirmed yet. */
  readonly #unconfirmed = new Map<LocalTrack, number>();

  constructor(readonly context: DeviceChangesContext) {}

  async switchTo(source: 'microphone' | 'camera', deviceId: string): Promise<void> {
    if (deviceId === '') throw invalidArgument('deviceId', 'must not be empty');
    const tracks = [...this.context.publisher.tracks.values()].filter(
      (track) => track.source === source && track.constraints !== undefined,
    );
    await Promise.all(tracks.map((track) => track.changes.run(() => this.#switch(track, deviceId))));
    this.chosen.set(source, deviceId);
  }

  replace(track: LocalTrack, media: MediaStreamTrack): Promise<void> {
    return track.changes.run(async () => {
      await this.put(track, media, false);
      track.isOwn = false;
      track.constraints = undefined;
      track.isReleased = false;
    });
  }

  async setMuted(track: LocalTrack, muted: boolean): Promise<void> {
    this.#mutedByServer.delete(track);
    this.#unconfirmed.set(track, (this.#unconfirmed.get(track) ?? 0) + 1);
    track.wantsMuted = muted;
    // At once, and not after earlier changes: no sound or picture leaves from now on.
    if (muted) this.#show(track, true);
    try {
      await track.changes.run(async () => {
        // Of several quick changes the last one counts.
        if (!track.wantsMuted) return this.#unmute(track);
        await this.context.publisher.setMuted(track, true);
        return this.#release(track);
      });
    } finally {
      this.#unconfirmed.set(track, (this.#unconfirmed.get(track) ?? 1) - 1);
    }
  }

  /**
   * Takes the gateway's view of the track. Only a mute is taken: a change that was sent before this participant's own
   * mute must not open the microphone again. A mute of the server ends when the server lifts it.
   */
  align(track: LocalTrack, muted: boolean): void {
    if (track.muted === muted || (this.#unconfirmed.get(track) ?? 0) > 0) return;
    if (muted) {
      this.#mutedByServer.add(track);
      this.#show(track, true);
    } else if (this.#mutedByServer.delete(track)) this.#show(track, false);
  }

  /** Reports it if the browser has opened another device than the chosen one, which is gone. */
  check(track: LocalTrack): void {
    const { deviceId: wanted, ...others } = track.constraints ?? {};
    const ids = idsIn(wanted);
    const { deviceId } = track;
    if (deviceId === undefined || ids.length === 0 || ids.includes(deviceId)) return;
    track.constraints = others;
    this.context.emit('deviceFallback', track);
  }

  /** Opens the device of the track again, or the browser's default one if it is gone. */
  async #reopen(track: LocalTrack): Promise<MediaStreamTrack> {
    const { platform } = this.context;
    try {
      return await reopen(platform, track);
    } catch (error) {
      const ideal = idsIn(track.constraints?.deviceId);
      if (!hasCode(error, 'device_not_found') || ideal.length === 0) throw error;
      return reopen(platform, track, { ideal });
    }
  }

  async #switch(track: LocalTrack, deviceId: string): Promise<void> {
    const { platform } = this.context;
    if (track.isReleased) {
      track.constraints = { ...track.constraints, deviceId: { exact: deviceId } };
      return;
    }
    try {
      await this.put(track, await reopen(platform, track, { exact: deviceId }));
    } catch (error) {
      // Many phones open only one camera at a time.
      if (!hasCode(error, 'device_in_use')) throw error;
      track.captured.stop();
      try {
        await this.put(track, await reopen(platform, track, { exact: deviceId }));
      } catch (failure) {
        await this.put(track, await this.#reopen(track));
        throw failure;
      }
    }
  }

  async #unmute(track: LocalTrack): Promise<void> {
    const { publisher } = this.context;
    const media = track.isReleased ? await this.#reopen(track) : undefined;
    try {
      if (!track.wantsMuted) {
        this.#show(track, false);
        // Before the new media: the media server drops what it gets of a muted track, and with it the first picture.
        await publisher.setMuted(track, false);
      }
    } catch (error) {
      media?.stop();
      this.#show(track, true);
      throw error;
    }
    // A mute in the meantime waits for its turn.
    if (track.wantsMuted) media?.stop();
    else if (media !== undefined) {
      await this.put(track, media);
      track.isReleased = false;
    }
  }

  async #release(track: LocalTrack): Promise<void> {
    if (!track.releaseOnMute || !track.isOwn || track.isReleased) return;
    track.release();
    await this.context.publisher.replaceMedia(track, null);
  }

  /**
   * Sends this media from now on, and closes the previous device.
   * @param isOpened whether the SDK opened the new media
   */
  async put(track: LocalTrack, media: MediaStreamTrack, isOpened = true): Promise<void> {
    const { publisher } = this.context;
    const previous = track.captured;
    const sent = (await track.processing?.process(media)) ?? media;
    sent.enabled = !track.muted;
    if (publisher.tracks.get(track.trackId) !== track) {
      if (isOpened) media.stop();
      throw new CallplaneError('not_found', `The track "${track.trackId}" is no longer published.`);
    }
    await publisher.replaceMedia(track, sent);
    track.setMedia(sent, media);
    if (track.isOwn && previous !== media) previous.stop();
    if (isOpened) this.check(track);
    this.context.onMedia(track);
  }

  #show(track: LocalTrack, muted: boolean): void {
    track.mediaStreamTrack.enabled = !muted;
    if (track.muted === muted) return;
    track.muted = muted;
    this.context.emit('localTrackUpdated', track);
  }
}

function idsIn(deviceId: ConstrainDOMString | undefined): string[] {
  const isObject = typeof deviceId === 'object' && !Array.isArray(deviceId);
  const given = isObject ? [deviceId.exact, deviceId.ideal] : [deviceId];
  return given.flat().filter((id) => id !== undefined);
}
