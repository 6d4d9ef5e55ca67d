import type { TrackReference } from '../protocol.generated.js';
import type { Display } from '../subscriptions.js';

/** One publication of a track: the same object whatever changes, until the track is no longer listed. */
export interface Listed extends TrackReference {
  isListed: boolean;
}

/** How long a track must be hidden, or need a lower layer, until that is reported: scrolling past changes nothing. */
const LESS_AFTER_MS = 1000;

type Observed = Omit<Shown, 'page'> & { element: HTMLVideoElement; watched: Watched; owner: Document };

interface Watched {
  track: Listed;
  elements: Set<HTMLMediaElement>;
  reported: Display | undefined;
  /** Since when the track needs less than was reported. */
  lessSinceMs: number | undefined;
}

/**
 * Watches the elements that show remote video: their size, whether they are in view, and whether the page is. Reports
 * how each track is displayed: more at once, less after a while.
 */
export class Displays {
  readonly #watched = new Map<Listed, Watched>();
  readonly #observed = new Map<Element, Observed>();
  /** By document. An observer of another document does not see its elements. */
  readonly #observers = new Map<Document, (IntersectionObserver | ResizeObserver)[]>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly report: (track: TrackReference, display: Display) => void) {}

  /** Watches the element until `stop` is called, or the element shows another track. */
  observe(track: Listed, element: HTMLMediaElement): void {
    let watched = this.#watched.get(track);
    if (watched === undefined) {
      watched = { track, elements: new Set(), reported: undefined, lessSinceMs: undefined };
      this.#watched.set(track, watched);
    }
    // The element shows this track in place of another one.
    this.#observed.get(element)?.watched.elements.delete(element);
    this.#forget(element);
    watched.elements.add(element);
    const { ownerDocument: owner } = element;
    this.#observed.set(element, {
      watched,
      owner,
      element: element as HTMLVideoElement,
      isInView: undefined,
      width: 0,
      height: 0,
    });
    for (const observer of this.#observersOf(owner)) observer.observe(element);
    for (const event of EVENTS) element.addEventListener(event, this.#evaluateSoon);
    element.addEventListener('timeupdate', this.#onProgress);
    this.#evaluateSoon();
  }

  stop(track: Listed, element: HTMLMediaElement): void {
    if (this.#observed.get(element)?.watched.track !== track) return;
    this.#forget(element);
    this.#watched.get(track)?.elements.delete(element);
    // Hidden or unpublished tracks are the roster's business.
    if (!track.isListed) this.#watched.delete(track);
    else this.#evaluateSoon();
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const { element } of this.#observed.values()) this.#forget(element);
    this.#watched.clear();
  }

  #observersOf(owner: Document): (IntersectionObserver | ResizeObserver)[] {
    const present = this.#observers.get(owner);
    if (present !== undefined) return present;
    // A closed window has no view, and shows nothing.
    const { defaultView: view } = owner;
    if (view === null) return [];
    owner.addEventListener('visibilitychange', this.#evaluateSoon);
    const inView = new view.IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) this.#changed(target, { isInView: isIntersecting });
    });
    const sizes = new view.ResizeObserver((entries) => {
      for (const { target, contentRect: size } of entries)
        this.#changed(target, { width: size.width, height: size.height });
    });
    this.#observers.set(owner, [inView, sizes]);
    return [inView, sizes];
  }

  #forget(element: Element): void {
    const observed = this.#observed.get(element);
    if (observed === undefined) return;
    const { owner } = observed;
    const observers = this.#observers.get(owner) ?? [];
    for (const observer of observers) observer.unobserve(element);
    for (const event of EVENTS) element.removeEventListener(event, this.#evaluateSoon);
    element.removeEventListener('timeupdate', this.#onProgress);
    this.#observed.delete(element);
    if ([...this.#observed.values()].some((one) => one.owner === owner)) return;
    owner.removeEventListener('visibilitychange', this.#evaluateSoon);
    this.#observers.delete(owner);
  }

  /** Pages move elements to windows of their own, and no event says so. A hidden page has no other timely events. */
  readonly #onProgress = ({ currentTarget }: Event): void => {
    const observed = this.#observed.get(currentTarget as Element);
    if (observed !== undefined && observed.owner !== observed.element.ownerDocument)
      this.observe(observed.watched.track, observed.element);
  };

  #changed(element: Element, change: Partial<Shown>): void {
    const observed = this.#observed.get(element);
    if (observed === undefined) return;
    Object.assign(observed, change);
    this.#evaluateSoon();
  }

  readonly #evaluateSoon = (): void => this.#evaluateIn(0);

  #evaluateIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#evaluate(), ms);
  }

  #evaluate(): void {
    const nowMs = performance.now();
    const nextMs = Math.min(...[...this.#watched.values()].map((one) => this.#evaluateOne(one, nowMs)));
    if (nextMs < Infinity) this.#evaluateIn(nextMs);
  }

  /** @returns the time after which the track has to be looked at again, in milliseconds */
  #evaluateOne(watched: Watched, nowMs: number): number {
    const { track, elements, reported } = watched;
    if (!track.isListed) {
      this.#watched.delete(track);
      return Infinity;
    }
    const shown = [...elements].flatMap((element) => this.#observed.get(element) ?? []);
    // The browser reports each element once, soon after its observation has begun.
    if (shown.some(({ isInView, owner }) => isInView === undefined && !isHiddenPage(owner))) return Infinity;
    const now = displayOf(
      shown.map((one) => ({ ...one, page: pageStateOf(one.owner) })),
      reported,
    );
    if (isLess(now, reported)) {
      watched.lessSinceMs ??= nowMs;
      const waitMs = watched.lessSinceMs + LESS_AFTER_MS - nowMs;
      if (waitMs > 0) return waitMs;
    }
    watched.lessSinceMs = undefined;
    watched.reported = now;
    if (elements.size === 0) this.#watched.delete(track);
    if (!isSame(now, reported)) this.report(track, now);
    return Infinity;
  }
}

function isHiddenPage({ hidden, defaultView }: Document): boolean {
  return hidden || defaultView === null;
}

function pageStateOf(owner: Document): PageState {
  const { pictureInPictureElement: floating, defaultView } = owner;
  return { isHidden: isHiddenPage(owner), pixelRatio: defaultView?.devicePixelRatio ?? 1, floating };
}

/** The picture has another size, or floats above other windows. */
const EVENTS = ['resize', 'loadedmetadata', 'enterpictureinpicture', 'leavepictureinpicture'] as const;

/** Whether the track needs less than before. Its first layer is no less, but an element may be inserted a little later. */
function isLess(now: Display, before: Display | undefined): boolean {
  if (now.isHidden !== (before?.isHidden ?? false)) return now.isHidden;
  return before !== undefined && now.maxSpatial < before.maxSpatial;
}

function isSame(now: Display, before: Display | undefined): boolean {
  return now.isHidden === before?.isHidden && now.maxSpatial === before.maxSpatial && now.pixels === before.pixels;
}

export interface Shown {
  element: { readonly videoWidth?: number; readonly videoHeight?: number };
  /** Whether a part of it is in the window; undefined if that is not known yet. */
  isInView: boolean | undefined;
  /** In CSS pixels. */
  width: number;
  height: number;
  /** The document of the element. */
  page: PageState;
}

interface PageState {
  /** Whether the tab is in the background, or the window is minimised. */
  isHidden: boolean;
  /** Pixels of the screen for one CSS pixel. */
  pixelRatio: number;
  /** The element that floats above other windows. */
  floating: unknown;
}

/** The usual sizes of the layers below the highest one, in pixels: publications choose their layers accordingly. */
const LAYER_PIXELS = [320 * 180, 640 * 360] as const;
const HIGHEST = 2;
/** How much a layer may be enlarged, by area, until the next one is requested, and until it is requested again. */
const ENLARGED_MAX = 2;
const ENLARGED_AGAIN_MAX = 1.6;

/**
 * How a track is displayed by the elements that show it: as large as the largest one needs.
 * @param before what was found last: between two layers it decides, so that a size at the limit does not alternate
 */
export function displayOf(shown: readonly Shown[], before: Display | undefined): Display {
  const displays = shown.map((one) => displayOfOne(one, before));
  const visible = displays.filter(({ isHidden }) => !isHidden);
  const [first, ...others] = visible;
  // The layer stays, so that the track comes back as it was.
  if (first === undefined) return { maxSpatial: before?.maxSpatial ?? HIGHEST, isHidden: true, pixels: 0 };
  return others.reduce(
    (largest, one) => ({
      maxSpatial: Math.max(largest.maxSpatial, one.maxSpatial),
      isHidden: false,
      pixels: Math.max(largest.pixels, one.pixels),
    }),
    first,
  );
}

function displayOfOne(shown: Shown, before: Display | undefined): Display {
  const { element, isInView, width, height, page } = shown;
  const pixels = Math.round(width * height * page.pixelRatio ** 2);
  // Its window has a size of its own.
  if (element === page.floating) return { maxSpatial: HIGHEST, isHidden: false, pixels };
  const isHidden = page.isHidden || isInView === false || pixels === 0;
  const maxSpatial = isUnsized(shown) ? (before?.maxSpatial ?? HIGHEST) : layerFor(pixels, before?.maxSpatial ?? 0);
  return { maxSpatial, isHidden, pixels };
}

/** Whether the page gives the element no size: it then has that of its picture, and says nothing about what is needed. */
function isUnsized({ element, width, height }: Shown): boolean {
  const { videoWidth = 0, videoHeight = 0 } = element;
  // Before it has a picture, browsers give it this size.
  if (videoWidth === 0) return width === 300 && height === 150;
  return videoWidth === width && videoHeight === height;
}

function layerFor(pixels: number, current: number): number {
  const layer = LAYER_PIXELS.findIndex(
    (size, at) => pixels <= size * (current > at ? ENLARGED_AGAIN_MAX : ENLARGED_MAX),
  );
  return layer === -1 ? HIGHEST : layer;
}
