import {
  abortable,
  abortedError,
  assertNotAborted,
  assertPermitted,
  CallplaneError,
  invalidArgument,
} from '../errors.js';
import { PROTOCOL_LIMITS, type TrackSource } from '../protocol.generated.js';
import type { LocalTrack } from './local-track.js';

export interface PublicationsContext {
  published: () => Iterable<LocalTrack>;
  permissions: () => readonly string[];
  /** @throws CallplaneError once the call is over */
  assertOpen: () => void;
}

/** Ids and sources of the tracks of a call. */
type TrackName = Pick<LocalTrack, 'trackId' | 'source'>;

/** Tracks on their way: their devices open, or the gateway has not confirmed them yet. */
export class Publication {
  readonly #abort = new AbortController();
  readonly #tracks = new Map<string, LocalTrack>();
  readonly #muted = new Map<string, boolean>();
  /** Tracks that the application has unpublished meanwhile. */
  readonly #cancelled = new Set<string>();

  /**
   * @param trackIds the reserved ids
   * @param release ends the reservation: the tracks are published, or will not be
   */
  constructor(
    readonly trackIds: ReadonlyMap<TrackSource, string>,
    readonly release: () => void,
  ) {}

  /** Aborted when nothing of the publication is wanted any more. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isOpening(): boolean {
    return this.#tracks.size === 0;
  }

  get names(): TrackName[] {
    return [...this.trackIds].map(([source, trackId]) => ({ source, trackId }));
  }

  trackOf(trackId: string): LocalTrack | undefined {
    return this.#tracks.get(trackId);
  }

  isWanted({ trackId }: LocalTrack): boolean {
    return !this.signal.aborted && !this.#cancelled.has(trackId);
  }

  /** Its device is open, and it has its id. */
  opened(track: LocalTrack): void {
    const { trackId } = track;
    this.#tracks.set(trackId, track);
    const muted = this.#muted.get(trackId);
    if (muted !== undefined) this.mute(trackId, muted);
    if (this.#cancelled.has(trackId)) track.stop();
  }

  /** The track begins muted, or no longer does. */
  mute(trackId: string, muted: boolean): void {
    this.#muted.set(trackId, muted);
    const track = this.#tracks.get(trackId);
    if (track === undefined) return;
    track.muted = track.wantsMuted = muted;
    track.mediaStreamTrack.enabled = !muted;
  }

  /** Closes the device at once, or as soon as it opens. */
  cancel(trackId: string): void {
    this.#cancelled.add(trackId);
    this.#tracks.get(trackId)?.stop();
    if (this.#cancelled.size === this.trackIds.size) this.abort(cancelledError());
  }

  abort(error: CallplaneError): void {
    this.#abort.abort(error);
  }

  /** @param error why the call is over */
  close(error: CallplaneError): void {
    for (const track of this.#tracks.values()) track.stop();
    this.abort(this.isOpening ? new CallplaneError('aborted', error.message, { cause: error }) : error);
  }
}

/** The publications of a call that are in progress. */
export class Publications {
  /** By reserved id. `done` rejects at once when the publication is cancelled; `settled` resolves after its clean-up. */
  readonly #pending = new Map<
    string,
    { publication: Publication; done: Promise<unknown>; settled: Promise<unknown> }
  >();

  constructor(private readonly context: PublicationsContext) {}

  get free(): number {
    return PROTOCOL_LIMITS.tracksMax - this.#taken().size;
  }

  has({ trackId }: LocalTrack): boolean {
    return this.#pending.has(trackId);
  }

  trackOf(trackId: string): LocalTrack | undefined {
    return this.#pending.get(trackId)?.publication.trackOf(trackId);
  }

  /** Resolves when the track is published, and rejects if it is not. Resolves at once if none is on its way. */
  async published(trackId: string): Promise<void> {
    await this.#pending.get(trackId)?.done;
  }

  async mute(trackId: string, muted: boolean): Promise<void> {
    this.#pending.get(trackId)?.publication.mute(trackId, muted);
    await this.published(trackId);
  }

  /** Resolves when the tracks are gone from the gateway as well. */
  async cancel(isMeant: (track: TrackName) => boolean): Promise<void> {
    const meant = [...this.#pending].flatMap(([trackId, { publication, settled }]) => {
      if (!publication.names.some((name) => name.trackId === trackId && isMeant(name))) return [];
      publication.cancel(trackId);
      // A device that still opens may take until the user has answered.
      return publication.isOpening ? [] : settled;
    });
    await Promise.all(meant);
  }

  /** @param error why the call is over */
  close(error: CallplaneError): void {
    for (const { publication } of this.#pending.values()) publication.close(error);
  }

  /**
   * Checks new tracks before their devices are opened, and reserves their ids while the task runs: the application's own
   * choice, or a free one for each source. Rejects at once when the publication is cancelled; the task then still closes
   * what it has opened.
   * @throws CallplaneError `permission_denied`, `already_published` or `too_many_tracks`; the task does not run then.
   */
  async run<T>(
    wanted: readonly { source: TrackSource; trackId?: string | undefined }[],
    signal: AbortSignal | undefined,
    task: (publication: Publication) => Promise<T>,
  ): Promise<T> {
    this.context.assertOpen();
    assertNotAborted(signal);
    const publication: Publication = new Publication(this.#idsFor(wanted), () => {
      for (const [trackId, one] of this.#pending) if (one.publication === publication) this.#pending.delete(trackId);
    });
    const abort = ({ target }: Event) => publication.abort(abortedError(target as AbortSignal));
    signal?.addEventListener('abort', abort);
    const running = task(publication);
    const done = abortable(running, publication.signal);
    const settled = running.catch(() => undefined).finally(publication.release);
    for (const { trackId } of publication.names) this.#pending.set(trackId, { publication, done, settled });
    try {
      return await done;
    } finally {
      signal?.removeEventListener('abort', abort);
      if (publication.isOpening) publication.release();
    }
  }

  #idsFor(wanted: readonly { source: TrackSource; trackId?: string | undefined }[]): Map<TrackSource, string> {
    for (const { source } of wanted) assertPermitted(this.context.permissions(), PERMISSION_OF[source]);
    if (wanted.length > this.free)
      throw new CallplaneError(
        'too_many_tracks',
        `A participant publishes at most ${PROTOCOL_LIMITS.tracksMax} tracks. Unpublish one first.`,
      );
    const trackIds = new Map<TrackSource, string>();
    const taken = this.#taken();
    for (const { source, trackId } of wanted) {
      const id = trackId ?? freeTrackId(source, taken);
      if (!/^[A-Za-z0-9_-]{1,64}$/.test(id))
        throw invalidArgument('trackId', 'must have 1 to 64 letters, digits, "-" or "_"');
      if (taken.has(id))
        throw new CallplaneError(
          'already_published',
          `The track "${id}" is already published. Use replaceTrack() or switchDevice(), or unpublish it first.`,
        );
      taken.set(id, source);
      trackIds.set(source, id);
    }
    return trackIds;
  }

  #taken(): Map<string, TrackSource> {
    const pending = [...this.#pending.values()].flatMap(({ publication }) => publication.names);
    const names = [...this.context.published(), ...pending];
    return new Map(names.map(({ trackId, source }) => [trackId, source]));
  }
}

export function cancelledError(): CallplaneError {
  return new CallplaneError('aborted', 'The track was unpublished before it was published.');
}

export const PERMISSION_OF = {
  microphone: 'audio:publish',
  camera: 'video:publish',
  screen: 'screen:publish',
  screen_audio: 'screen:publish',
} as const satisfies Record<TrackSource, string>;

/** The name of the source; for further screens with a number appended. */
function freeTrackId(source: TrackSource, taken: ReadonlyMap<string, TrackSource>): string {
  if (!source.startsWith('screen') && [...taken.values()].includes(source))
    throw new CallplaneError(
      'already_published',
      `The ${source} is already published. Use switchDevice() or replaceTrack(), or publish it under a trackId of its own.`,
    );
  let trackId: string = source;
  for (let count = 2; taken.has(trackId); count++) trackId = `${source}-${count}`;
  return trackId;
}
