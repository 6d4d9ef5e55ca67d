import { CallplaneError } from '../errors.js';
import type { RemoteTrack } from '../remote/participant.js';
import { Attachments } from './attachments.js';

export interface PlaybackEvents {
  /** The browser plays no sound before a gesture of the user. Call `startAudio()` in the handler of a click. */
  audioPlaybackBlocked: undefined;
  /** The sound plays, after it was blocked. */
  audioPlaybackStarted: undefined;
}

export interface PlaybackContext {
  emit?: (name: keyof PlaybackEvents) => void;
  /** Watches an element for as long as the track is attached to it. @returns a function that ends it. */
  observe?: (track: RemoteTrack, element: HTMLMediaElement) => () => void;
}

interface Playing {
  attachments: Attachments;
  stopObserving: Map<HTMLMediaElement, () => void>;
}

/** Plays the remote tracks in elements of the page, and knows whether the browser lets them sound. */
export class Playback {
  readonly #context: PlaybackContext;
  readonly #playing = new WeakMap<RemoteTrack, Playing>();
  readonly #elements = new Set<HTMLMediaElement>();
  readonly #blocked = new Set<HTMLMediaElement>();
  #outputId: string | undefined;

  constructor(context: PlaybackContext = {}) {
    this.#context = context;
  }

  get isAudioBlocked(): boolean {
    return this.#blocked.size > 0;
  }

  attach(track: RemoteTrack, element?: HTMLMediaElement): HTMLMediaElement {
    const playing = this.#of(track);
    const attached = playing.attachments.attach(element);
    const { observe } = this.#context;
    if (observe !== undefined) {
      // Another track may have had the element meanwhile.
      playing.stopObserving.get(attached)?.();
      playing.stopObserving.set(attached, observe(track, attached));
    }
    return attached;
  }

  detach(track: RemoteTrack, element?: HTMLMediaElement): HTMLMediaElement[] {
    const playing = this.#playing.get(track);
    if (playing === undefined) return [];
    const detached = playing.attachments.detach(element);
    for (const one of detached) {
      playing.stopObserving.get(one)?.();
      playing.stopObserving.delete(one);
    }
    return detached;
  }

  /** Gives the elements of the track its present media. */
  update(track: RemoteTrack): void {
    this.#playing.get(track)?.attachments.setMedia(track.mediaStreamTrack);
  }

  /** @throws CallplaneError `audio_blocked` if the browser still refuses, because no gesture of the user led here. */
  async startAudio(): Promise<void> {
    await Promise.all([...this.#blocked].map((element) => this.#play(element)));
    if (this.isAudioBlocked)
      throw new CallplaneError('audio_blocked', 'The browser blocks sound. Call startAudio() in a click handler.');
  }

  /** Plays all sound, now and later, on this device. */
  async setOutput(deviceId: string): Promise<void> {
    if (typeof HTMLMediaElement === 'undefined' || !('setSinkId' in HTMLMediaElement.prototype))
      throw new CallplaneError('unsupported', 'This browser cannot choose the audio output.');
    try {
      await Promise.all([...this.#elements].map((element) => element.setSinkId(deviceId)));
    } catch (error) {
      throw new CallplaneError('device_not_found', `The audio output "${deviceId}" is not available.`, {
        cause: error,
      });
    }
    this.#outputId = deviceId;
  }

  #of(track: RemoteTrack): Playing {
    let playing = this.#playing.get(track);
    if (playing === undefined) {
      const attachments = new Attachments(track.kind, {
        onMedia: (element) => void this.#begin(element),
        onIdle: (element) => this.#end(element),
      });
      attachments.setMedia(track.mediaStreamTrack);
      this.#playing.set(track, (playing = { attachments, stopObserving: new Map() }));
    }
    return playing;
  }

  async #begin(element: HTMLMediaElement): Promise<void> {
    this.#elements.add(element);
    if (this.#outputId !== undefined) await element.setSinkId(this.#outputId).catch(() => undefined);
    await this.#play(element);
  }

  async #play(element: HTMLMediaElement): Promise<void> {
    try {
      await element.play();
      this.#setBlocked(element, false);
    } catch (error) {
      // Another error means that the element has got other media in the meantime, or none.
      if (error instanceof Error && error.name === 'NotAllowedError') this.#setBlocked(element, !element.muted);
    }
  }

  #end(element: HTMLMediaElement): void {
    this.#elements.delete(element);
    this.#setBlocked(element, false);
  }

  #setBlocked(element: HTMLMediaElement, isBlocked: boolean): void {
    const wasBlocked = this.isAudioBlocked;
    if (isBlocked && this.#elements.has(element)) this.#blocked.add(element);
    else this.#blocked.delete(element);
    if (this.isAudioBlocked === wasBlocked) return;
    this.#context.emit?.(wasBlocked ? 'audioPlaybackStarted' : 'audioPlaybackBlocked');
  }
}
