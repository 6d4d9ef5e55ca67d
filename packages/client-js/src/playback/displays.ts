import type { Display } from '../adaptation/receive-plan.js';
import type { TrackReference } from '../protocol.generated.js';
import type { RemoteTrack } from '../remote/participant.js';
import { displayOf, type Shown } from './display.js';

/** How long a track must be hidden, or need a lower layer, until that is reported: scrolling past changes nothing. */
const LESS_AFTER_MS = 1000;
/** The shortest pause between two reports, each of which has all tracks that have changed. */
const REPORT_EVERY_MS = 250;

interface Watched {
  track: RemoteTrack;
  elements: Set<HTMLMediaElement>;
  reported: Display | undefined;
  /** Since when the track needs less than was reported. */
  lessSinceMs: number | undefined;
}

interface Observed extends Shown {
  watched: Watched;
}

/**
 * Watches the elements that show remote video: their size, whether they are in view, and whether the page is. Reports
 * how each track is displayed: more at once, less after a while.
 */
export class Displays {
  readonly #report: (track: TrackReference, display: Display) => void;
  readonly #watched = new Map<RemoteTrack, Watched>();
  readonly #observed = new Map<Element, Observed>();
  readonly #inView = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) this.#changed(target, { isInView: isIntersecting });
  });
  readonly #sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      this.#changed(target, { width: contentRect.width, height: contentRect.height });
    }
  });
  #timer: ReturnType<typeof setTimeout> | undefined;
  #reportedMs = -Infinity;

  constructor(report: (track: TrackReference, display: Display) => void) {
    this.#report = report;
  }

  /** Watches the element until the returned function is called. */
  observe(track: RemoteTrack, element: HTMLMediaElement): () => void {
    if (this.#observed.size === 0) document.addEventListener('visibilitychange', this.#evaluateSoon);
    let watched = this.#watched.get(track);
    if (watched === undefined) {
      watched = { track, elements: new Set(), reported: undefined, lessSinceMs: undefined };
      this.#watched.set(track, watched);
    }
    // The element shows this track in place of another one.
    this.#observed.get(element)?.watched.elements.delete(element);
    watched.elements.add(element);
    this.#observed.set(element, {
      watched,
      element: element as HTMLVideoElement,
      isInView: undefined,
      width: 0,
      height: 0,
    });
    for (const observer of [this.#inView, this.#sizes]) {
      // Only a new observation begins with a report.
      observer.unobserve(element);
      observer.observe(element);
    }
    for (const event of EVENTS) element.addEventListener(event, this.#evaluateSoon);
    this.#evaluateSoon();
    return () => this.#stop(track, element);
  }

  #stop(track: RemoteTrack, element: HTMLMediaElement): void {
    if (this.#observed.get(element)?.watched.track !== track) return;
    this.#inView.unobserve(element);
    this.#sizes.unobserve(element);
    for (const event of EVENTS) element.removeEventListener(event, this.#evaluateSoon);
    this.#observed.delete(element);
    if (this.#observed.size === 0) document.removeEventListener('visibilitychange', this.#evaluateSoon);
    this.#watched.get(track)?.elements.delete(element);
    // Hidden or unpublished tracks are the roster's business.
    if (!isListed(track)) this.#watched.delete(track);
    else this.#evaluateSoon();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#inView.disconnect();
    this.#sizes.disconnect();
    document.removeEventListener('visibilitychange', this.#evaluateSoon);
    this.#observed.clear();
    this.#watched.clear();
  }

  #changed(element: Element, change: Partial<Shown>): void {
    const observed = this.#observed.get(element);
    if (observed === undefined) return;
    Object.assign(observed, change);
    this.#evaluateSoon();
  }

  readonly #evaluateSoon = (): void => {
    this.#evaluateIn(Math.max(0, this.#reportedMs + REPORT_EVERY_MS - performance.now()));
  };

  #evaluateIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#evaluate(), ms);
  }

  #evaluate(): void {
    const nowMs = performance.now();
    let nextMs = Infinity;
    for (const watched of [...this.#watched.values()]) {
      const waitMs = this.#evaluateOne(watched, nowMs);
      if (waitMs !== undefined) nextMs = Math.min(nextMs, waitMs);
    }
    if (nextMs < Infinity) this.#evaluateIn(Math.max(REPORT_EVERY_MS, nextMs));
  }

  /** @returns the time after which the track has to be looked at again, in milliseconds */
  #evaluateOne(watched: Watched, nowMs: number): number | undefined {
    const { track, elements, reported } = watched;
    if (!isListed(track)) {
      this.#watched.delete(track);
      return undefined;
    }
    const shown = [...elements].flatMap((element) => this.#observed.get(element) ?? []);
    // The browser reports each element once, soon after its observation has begun.
    if (shown.some(({ isInView }) => isInView === undefined) && !document.hidden) return undefined;
    const now = displayOf(shown, pageOf(), reported);
    if (isLess(now, reported)) {
      watched.lessSinceMs ??= nowMs;
      const waitMs = watched.lessSinceMs + LESS_AFTER_MS - nowMs;
      if (waitMs > 0) return waitMs;
    }
    watched.lessSinceMs = undefined;
    watched.reported = now;
    if (elements.size === 0) this.#watched.delete(track);
    if (isSame(now, reported)) return undefined;
    this.#reportedMs = nowMs;
    this.#report(referenceTo(track), now);
    return undefined;
  }
}

/** The picture has another size, or floats above other windows. */
const EVENTS = ['resize', 'loadedmetadata', 'enterpictureinpicture', 'leavepictureinpicture'] as const;

function pageOf() {
  return {
    isHidden: document.hidden,
    pixelRatio: devicePixelRatio,
    floating: document.pictureInPictureElement,
  };
}

function isListed(track: RemoteTrack): boolean {
  return track.participant.tracks.get(track.trackId) === track;
}

function referenceTo({ participant: { participantId }, trackId }: RemoteTrack): TrackReference {
  return { participantId, trackId };
}

/** Whether the track needs less than before. Its first layer is no less, but an element may be inserted a little later. */
function isLess(now: Display, before: Display | undefined): boolean {
  if (now.isHidden !== (before?.isHidden ?? false)) return now.isHidden;
  return before !== undefined && (now.maxSpatial ?? 0) < (before.maxSpatial ?? 0);
}

function isSame(now: Display, before: Display | undefined): boolean {
  return now.isHidden === before?.isHidden && now.maxSpatial === before.maxSpatial && now.pixels === before.pixels;
}
