import { CallplaneError } from '../errors.js';
import { entriesOf } from '../platform.js';
import { pause } from '../wait.js';
import type { LocalTrack, TrackProcessor } from './local-track.js';

/** Models are loaded meanwhile. */
const STARTS_WITHIN_MS = 10_000;
/** Below this many pictures a second, or below half of the camera's, a processor is too slow. */
const FRAMES_PER_SECOND_MIN = 10;
/** In measurements, one a second: the warm-up, and how long a processor may be too slow. */
const WARMS_UP_FOR = 3;
const SLOW_FOR = 3;

/** Puts the processor between the device and the others, or takes it away. @throws CallplaneError `processor_failed` */
export async function setProcessor(track: LocalTrack, processor: TrackProcessor | undefined): Promise<void> {
  const before = track.processing;
  if (before?.processor === processor) return;
  const processing = (track.processing = processor && new Processing(track, processor));
  try {
    if (!track.isReleased) await put(track, track.captured);
  } finally {
    before?.stop();
  }
  if (processing?.error !== undefined) throw processing.error;
}

/** Sends the media of the device, processed if there is a processor. A preview only shows it. */
async function put(track: LocalTrack, media: MediaStreamTrack): Promise<void> {
  if (track.host !== undefined) await track.host.put(track, media, false);
  else track.setMedia((await track.processing?.process(media)) ?? media, media);
}

/** Whether a processor is too slow, from one measurement a second. */
export class Pace {
  #age = 0;
  #slow = 0;

  /** @param isMeaningful false while the track is muted or the page is hidden, because browsers then slow it down */
  isTooSlow(framesPerSecond: number | undefined, cameraFramesPerSecond: number | undefined, isMeaningful: boolean) {
    const least = Math.min(FRAMES_PER_SECOND_MIN, (cameraFramesPerSecond ?? Infinity) / 2);
    this.#age = isMeaningful ? this.#age + 1 : 0;
    const isSlow = this.#age > WARMS_UP_FOR && framesPerSecond !== undefined && framesPerSecond < least;
    this.#slow = isSlow ? this.#slow + 1 : 0;
    return this.#slow >= SLOW_FOR;
  }
}

/** A processor at work on a track. If it fails or is too slow, the track is sent unprocessed from then on. */
class Processing {
  error: CallplaneError | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly track: LocalTrack,
    readonly processor: TrackProcessor,
  ) {}

  /** @returns the processed media, or the given one if that fails */
  async process(media: MediaStreamTrack): Promise<MediaStreamTrack> {
    clearInterval(this.#timer);
    // A mute without a processor disables the media of the device.
    media.enabled = true;
    const timeout = pause(STARTS_WITHIN_MS);
    const late = timeout.over.then(() => Promise.reject(new Error(`It took more than ${STARTS_WITHIN_MS} ms.`)));
    late.catch(() => undefined);
    try {
      const processed = await Promise.race([Promise.resolve(media).then((one) => this.processor.process(one)), late]);
      if (processed.kind !== media.kind) throw new Error(`It returned ${processed.kind} for ${media.kind}.`);
      this.#watch(media, processed);
      return processed;
    } catch (cause) {
      this.#fail(cause);
      return media;
    } finally {
      timeout.end();
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    if (this.track.processing === this) this.track.processing = undefined;
    try {
      this.processor.stop();
    } catch {
      // The media that it has made is not used any more.
    }
  }

  #watch(media: MediaStreamTrack, processed: MediaStreamTrack): void {
    const isCurrent = () => this.track.processing === this && this.track.mediaStreamTrack === processed;
    const giveUp = (cause: Error) => {
      if (!isCurrent()) return;
      this.#fail(cause);
      // A mute that is in progress may have closed the device.
      void this.track.changes
        .run(async () => (this.track.isReleased ? undefined : put(this.track, this.track.captured)))
        .catch(() => undefined);
    };
    processed.addEventListener('ended', () => {
      if (media.readyState === 'live' && !this.track.isReleased) giveUp(new Error('The processed track has ended.'));
    });
    if (media.kind !== 'video') return;
    const pace = new Pace();
    const measure = async () => {
      const { muted, isReleased } = this.track;
      const isHidden = (globalThis as Partial<typeof globalThis>).document?.hidden === true;
      const stats = await this.track.host?.context.publisher
        .senderOf(this.track.trackId)
        ?.getStats()
        .catch(() => undefined);
      const framesPerSecond = stats && entriesOf(stats).find(({ type }) => type === 'media-source')?.framesPerSecond;
      if (pace.isTooSlow(framesPerSecond, media.getSettings().frameRate, !muted && !isReleased && !isHidden))
        giveUp(new Error(`It made ${framesPerSecond} pictures a second.`));
    };
    this.#timer = setInterval(() => void measure(), 1000);
  }

  #fail(cause: unknown): void {
    const why = cause instanceof Error ? cause.message : String(cause);
    this.error = new CallplaneError('processor_failed', `The processor of the ${this.track.source} failed: ${why}`, {
      cause,
    });
    this.stop();
    this.track.host?.context.onProblem(this.error);
  }
}
