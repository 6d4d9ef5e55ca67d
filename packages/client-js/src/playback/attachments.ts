import type { TrackKind } from '../protocol.generated.js';

/** Which tracks an element plays: at most one of each kind. */
const owners = new WeakMap<HTMLMediaElement, Partial<Record<TrackKind, Attachments>>>();

export interface AttachmentsListener {
  /** An element has got media, with the element in the document or not. */
  onMedia: (element: HTMLMediaElement) => void;
  /** An element has no media any more. */
  onIdle?: (element: HTMLMediaElement) => void;
  /** Whether an element plays the track. */
  onPlaying?: (isPlaying: boolean) => void;
}

/** The elements that play one track. They follow the track's media, which may come later, change and end. */
export class Attachments {
  readonly #elements = new Set<HTMLMediaElement>();
  #media: MediaStreamTrack | undefined;

  constructor(
    private readonly kind: TrackKind,
    private readonly listener: AttachmentsListener,
  ) {}

  attach(element: HTMLMediaElement = document.createElement(this.kind)): HTMLMediaElement {
    const others = owners.get(element) ?? {};
    if (others[this.kind] !== this) others[this.kind]?.detach(element);
    owners.set(element, { ...owners.get(element), [this.kind]: this });
    this.#elements.add(element);
    for (const event of PLAYING) element.addEventListener(event, this.#onPlaying);
    element.autoplay = true;
    // Without it, iOS plays a video in full screen only.
    if (isVideo(element)) element.playsInline = true;
    setSound(element);
    this.#show(element);
    return element;
  }

  /** @returns the detached elements, so that the page can remove them. */
  detach(element?: HTMLMediaElement): HTMLMediaElement[] {
    const detached = [...this.#elements].filter((one) => element === undefined || one === element);
    for (const one of detached) {
      this.#elements.delete(one);
      for (const event of PLAYING) one.removeEventListener(event, this.#onPlaying);
      const { [this.kind]: _, ...others } = owners.get(one) ?? {};
      owners.set(one, others);
      setSound(one);
      this.#show(one);
    }
    return detached;
  }

  setMedia(media: MediaStreamTrack | undefined): void {
    if (media === this.#media) return;
    this.#media = media;
    for (const element of this.#elements) this.#show(element);
  }

  #show(element: HTMLMediaElement): void {
    const tracks = Object.values(owners.get(element) ?? {}).flatMap((owner) => owner.#media ?? []);
    element.srcObject = tracks.length === 0 ? null : new MediaStream(tracks);
    if (tracks.length > 0) this.listener.onMedia(element);
    else this.listener.onIdle?.(element);
    this.#onPlaying();
  }

  readonly #onPlaying = (): void => {
    const isPlaying = this.#media !== undefined && [...this.#elements].some(({ paused }) => !paused);
    this.listener.onPlaying?.(isPlaying);
  };
}

/** Events of an element that begins or ceases to play. */
const PLAYING = ['play', 'pause'] as const;

/** Elements of other windows have other classes. */
function isVideo(element: HTMLMediaElement): element is HTMLVideoElement {
  return element.localName === 'video';
}

/** Mutes an element without sound: browsers play muted elements without a gesture of the user. */
function setSound(element: HTMLMediaElement): void {
  element.muted = owners.get(element)?.audio === undefined;
}
