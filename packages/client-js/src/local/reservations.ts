import { assertPermitted, CallplaneError, invalidArgument } from '../errors.js';
import { PROTOCOL_LIMITS, type TrackSource } from '../protocol.generated.js';
import type { LocalTrack } from './local-track.js';

/** The permission that each source needs to publish. */
const PERMISSION_OF = {
  microphone: 'audio:publish',
  camera: 'video:publish',
  screen: 'screen:publish',
  screen_audio: 'screen:publish',
} as const satisfies Record<TrackSource, string>;

interface Wanted {
  source: TrackSource;
  /** The application's own choice of an id. */
  trackId?: string | undefined;
}

/** Checks new tracks before their devices are opened, and reserves track ids while that is in progress. */
export class Reservations {
  readonly #published: () => ReadonlyMap<string, LocalTrack>;
  readonly #permissions: () => readonly string[];
  readonly #reserved = new Map<string, TrackSource>();

  constructor(published: () => ReadonlyMap<string, LocalTrack>, permissions: () => readonly string[]) {
    this.#published = published;
    this.#permissions = permissions;
  }

  /** The number of tracks that the session may still publish. */
  get free(): number {
    return PROTOCOL_LIMITS.tracksMax - this.#taken().size;
  }

  isPermitted(source: TrackSource): boolean {
    return this.#permissions().includes(PERMISSION_OF[source]);
  }

  /**
   * Runs the task with an id for each source.
   * @throws CallplaneError `permission_denied`, `already_published` or `too_many_tracks`; the task does not run then.
   */
  async run<T>(
    wanted: readonly Wanted[],
    task: (trackIds: ReadonlyMap<TrackSource, string>) => Promise<T>,
  ): Promise<T> {
    for (const { source } of wanted) assertPermitted(this.#permissions(), PERMISSION_OF[source]);
    if (wanted.length > this.free)
      throw new CallplaneError(
        'too_many_tracks',
        `A participant publishes at most ${PROTOCOL_LIMITS.tracksMax} tracks. Unpublish one first.`,
      );
    const trackIds = new Map<TrackSource, string>();
    const taken = this.#taken();
    for (const { source, trackId } of wanted) {
      const id = trackId ?? freeTrackId(source, taken);
      assertFree(id, taken);
      taken.set(id, source);
      trackIds.set(source, id);
    }
    for (const [source, id] of trackIds) this.#reserved.set(id, source);
    try {
      return await task(trackIds);
    } finally {
      for (const id of trackIds.values()) this.#reserved.delete(id);
    }
  }

  /** Sources by track id. */
  #taken(): Map<string, TrackSource> {
    const published = [...this.#published().values()].map(({ trackId, source }) => [trackId, source] as const);
    return new Map([...published, ...this.#reserved]);
  }
}

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

function assertFree(trackId: string, taken: ReadonlyMap<string, TrackSource>): void {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(trackId))
    throw invalidArgument('trackId', 'must have 1 to 64 letters, digits, "-" or "_"');
  if (!taken.has(trackId)) return;
  throw new CallplaneError(
    'already_published',
    `The track "${trackId}" is already published. Use replaceTrack() or switchDevice(), or unpublish it first.`,
  );
}
