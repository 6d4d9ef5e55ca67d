import type { TrackKind } from '../protocol.generated.js';

/** Which tracks an element plays: at most one of each kind. */
const owners = new WeakMap<HTMLMediaElement, Partial<Record<TrackKind, Attachments>>>();

/** The elements that play one track. They follow the track's media, which may come later, change and end. */
export class Attachments {
  readonly #kind: TrackKind;
  readonly #onMedia: (element: HTMLMediaElement) => void;
  readonly #onIdle: (element: HTMLMediaElement) => void;
  readonly #elements = new Set<HTMLMediaElement>();
  #media: MediaStreamTrack | undefined;

  /**
   * @param onMedia called when an element has got media, with the element in the document or not
   * @param onIdle called when an element has no media any more
   */
  constructor(
    kind: TrackKind,
    onMedia: (element: HTMLMediaElement) => void,
    onIdle: (element: HTMLMediaElement) => void = () => undefined,
  ) {
    this.#kind = kind;
    this.#onMedia = onMedia;
    this.#onIdle = onIdle;
  }

  attach(element: HTMLMediaElement = document.createElement(this.#kind)): HTMLMediaElement {
    const others = owners.get(element) ?? {};
    if (others[this.#kind] !== this) others[this.#kind]?.detach(element);
    owners.set(element, { ...owners.get(element), [this.#kind]: this });
    this.#elements.add(element);
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
      const { [this.#kind]: _, ...others } = owners.get(one) ?? {};
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
    if (tracks.length > 0) this.#onMedia(element);
    else this.#onIdle(element);
  }
}

/** Elements of other windows have other classes. */
function isVideo(element: HTMLMediaElement): element is HTMLVideoElement {
  return element.localName === 'video';
}

/** Mutes an element without sound: browsers play muted elements without a gesture of the user. */
function setSound(element: HTMLMediaElement): void {
  element.muted = owners.get(element)?.audio === undefined;
}
