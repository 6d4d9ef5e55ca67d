import { CallplaneError } from '../errors.js';
import type { TrackKind, TrackReference } from '../protocol.generated.js';
import type { RemoteTrack } from '../remote/participant.js';
import { keyOf } from '../subscriptions.js';
import { Attachments } from './attachments.js';
import type { Displays, Listed } from './displays.js';

export interface PlaybackEvents {
  /** The browser plays no sound before a gesture of the user. Call `startAudio()` in the handler of a click. */
  audioPlaybackBlocked: undefined;
  /** The sound plays, after it was blocked. */
  audioPlaybackStarted: undefined;
}

export interface PlaybackContext {
  emit: (name: keyof PlaybackEvents) => void;
  onPlaying: (track: TrackReference, isPlaying: boolean) => void;
}

/** Plays the remote tracks in elements of the page, and knows whether the browser lets them sound. */
export class Playback {
  readonly #open = new Map<string, { listed: Listed; attachments: Attachments }>();
  readonly #elements = new Set<HTMLMediaElement>();
  readonly #blocked = new Set<HTMLMediaElement>();
  /** The video track that each element shows. */
  readonly #shown = new Map<HTMLMediaElement, Listed>();
  #displays: Pick<Displays, 'observe' | 'stop'> | undefined;
  #outputId: string | undefined;

  constructor(private readonly context: PlaybackContext) {}

  get isAudioBlocked(): boolean {
    return this.#blocked.size > 0;
  }

  /** The track is listed from now on. */
  open({ participantId, trackId }: TrackReference, kind: TrackKind): Pick<RemoteTrack, 'attach' | 'detach'> {
    const listed = { participantId, trackId, isListed: true };
    const attachments = new Attachments(kind, {
      onMedia: (element) => void this.#begin(element),
      onIdle: (element) => this.#end(element),
      onPlaying: (isPlaying) => {
        if (listed.isListed) this.context.onPlaying(listed, isPlaying);
      },
    });
    this.#open.set(keyOf(listed), { listed, attachments });
    return {
      attach: (given) => {
        const element = attachments.attach(given);
        if (kind === 'audio') return element;
        this.#shown.set(element, listed);
        this.#displays?.observe(listed, element);
        return element;
      },
      detach: (element) => {
        const detached = attachments.detach(element);
        for (const one of detached) {
          if (this.#shown.get(one) === listed) this.#shown.delete(one);
          this.#displays?.stop(listed, one);
        }
        return detached;
      },
    };
  }

  setMedia(track: TrackReference, media: MediaStreamTrack | undefined): void {
    this.#open.get(keyOf(track))?.attachments.setMedia(media);
  }

  /** The track is no longer listed: its participant does not publish it, has left, or is not shown. */
  end(track: Pick<RemoteTrack, 'participantId' | 'trackId' | 'detach'>): void {
    const open = this.#open.get(keyOf(track));
    if (open !== undefined) open.listed.isListed = false;
    this.#open.delete(keyOf(track));
    track.detach();
  }

  /** Watches the elements that show video, now and later. */
  watch(displays: Pick<Displays, 'observe' | 'stop'>): void {
    this.#displays = displays;
    for (const [element, track] of this.#shown) displays.observe(track, element);
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
    this.context.emit(wasBlocked ? 'audioPlaybackStarted' : 'audioPlaybackBlocked');
  }
}
