import { CallplaneError } from '../errors.js';
import type { RemoteTrack } from '../remote/participant.js';
import { Attachments } from './attachments.js';
import type { Displays } from './displays.js';

export interface PlaybackEvents {
  /** The browser plays no sound before a gesture of the user. Call `startAudio()` in the handler of a click. */
  audioPlaybackBlocked: undefined;
  /** The sound plays, after it was blocked. */
  audioPlaybackStarted: undefined;
}

/** Plays the remote tracks in elements of the page, and knows whether the browser lets them sound. */
export class Playback {
  readonly #emit: (name: keyof PlaybackEvents) => void;
  readonly #attachments = new WeakMap<RemoteTrack, Attachments>();
  readonly #elements = new Set<HTMLMediaElement>();
  readonly #blocked = new Set<HTMLMediaElement>();
  /** The video track that each element shows. */
  readonly #shown = new Map<HTMLMediaElement, RemoteTrack>();
  #displays: Pick<Displays, 'observe' | 'stop'> | undefined;
  #outputId: string | undefined;

  constructor(emit: (name: keyof PlaybackEvents) => void = () => undefined) {
    this.#emit = emit;
  }

  get isAudioBlocked(): boolean {
    return this.#blocked.size > 0;
  }

  attach(track: RemoteTrack, element?: HTMLMediaElement): HTMLMediaElement {
    const attached = this.#of(track).attach(element);
    if (track.kind === 'video') {
      this.#shown.set(attached, track);
      this.#displays?.observe(track, attached);
    }
    return attached;
  }

  detach(track: RemoteTrack, element?: HTMLMediaElement): HTMLMediaElement[] {
    const detached = this.#attachments.get(track)?.detach(element) ?? [];
    for (const one of detached) {
      if (this.#shown.get(one) === track) this.#shown.delete(one);
      this.#displays?.stop(track, one);
    }
    return detached;
  }

  /** Watches the elements that show video, now and later. */
  watch(displays: Pick<Displays, 'observe' | 'stop'>): void {
    this.#displays = displays;
    for (const [element, track] of this.#shown) displays.observe(track, element);
  }

  update(track: RemoteTrack): void {
    this.#attachments.get(track)?.setMedia(track.mediaStreamTrack);
  }

  /** @throws CallplaneError `audio_blocked` if the browser still refuses, because no gesture of the user led here. */
  async startAudio(): Promise<void> {
    await Promise.all([...this.#blocked].map((element) => this.#play(element)));
    if (this.isAudioBlocked)
      throw new CallplaneError('audio_blocked', 'The browser blocks sound. Call startAudio() in a click handler.');
  }

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

  #of(track: RemoteTrack): Attachments {
    let attachments = this.#attachments.get(track);
    if (attachments === undefined) {
      const begin = (element: HTMLMediaElement) => void this.#begin(element);
      attachments = new Attachments(track.kind, begin, (element) => this.#end(element));
      attachments.setMedia(track.mediaStreamTrack);
      this.#attachments.set(track, attachments);
    }
    return attachments;
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
    this.#emit(wasBlocked ? 'audioPlaybackStarted' : 'audioPlaybackBlocked');
  }
}
