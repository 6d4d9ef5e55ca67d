import type { Display } from '../adaptation/receive-plan.js';
import type { TrackReference } from '../protocol.generated.js';
import type { RemoteTrack } from '../remote/participant.js';
import type { Displays } from './displays.js';

/** Watches how the page displays remote video. Loads the code for it with the first element. */
export class LazyDisplays {
  readonly #report: (track: TrackReference, display: Display) => void;
  #displays: Promise<Displays> | undefined;
  #isClosed = false;

  constructor(report: (track: TrackReference, display: Display) => void) {
    this.#report = report;
  }

  /** Watches the element until the returned function is called. */
  observe(track: RemoteTrack, element: HTMLMediaElement): () => void {
    const isWatched = track.kind === 'video' && typeof IntersectionObserver !== 'undefined' && !this.#isClosed;
    if (!isWatched) return () => undefined;
    let stop: (() => void) | undefined;
    let isStopped = false;
    this.#displays ??= import('./displays.js').then(({ Displays }) => new Displays(this.#report));
    // Without the code, for example because the page is offline, the track is received as if it were displayed in full.
    this.#displays.then(
      (displays) => {
        if (!isStopped && !this.#isClosed) stop = displays.observe(track, element);
      },
      () => (this.#displays = undefined),
    );
    return () => {
      isStopped = true;
      stop?.();
    };
  }

  close(): void {
    this.#isClosed = true;
    void this.#displays?.then((displays) => displays.close());
  }
}
