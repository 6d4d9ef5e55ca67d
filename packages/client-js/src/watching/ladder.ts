import type { Layer } from '../protocol.generated.js';

/**
 * The levels in which a video track can be received: 0 is paused, 1 the smallest picture at half its frame rate, 2 the
 * smallest picture, and so on up to 6, the largest of three layers.
 */
export const PAUSED = 0;
/** The smallest picture at its full frame rate: what every track gets before any track gets more. */
export const SMALLEST = 2;
export const HIGHEST = 6;

/** Bits of a level, compared with the highest: browsers divide them like this between simulcast layers. */
const RELATIVE = [0, 0.037, 0.08, 0.15, 0.25, 0.6, 1] as const;
/** A level is not expected to need less than this, in bits per second, until it was measured. */
const AT_LEAST_BPS = [0, 45_000, 100_000, 190_000, 310_000, 500_000, 800_000] as const;
/** Lowest frame rate at which half still looks smooth, by layer. The smallest layer needs so few bits that it always counts. */
const HALF_FROM_FPS = [0, 16, 24] as const;
/** Bits per second of the highest level of a track of which nothing is known: 1280×720 in Chromium. */
const HIGHEST_BPS = 1_500_000;
/** Pictures that are at least so large, in pixels, have three and two layers in Chromium. */
const THREE_LAYERS_FROM = 960 * 540;
const TWO_LAYERS_FROM = 480 * 270;

/** The highest level of a track whose largest picture so far had this area; 0 for one without a picture. */
export function highestLevelOf(area: number): number {
  if (area === 0 || area >= THREE_LAYERS_FROM) return HIGHEST;
  return area >= TWO_LAYERS_FROM ? 4 : 2;
}

/** The highest level that the layer, an upper bound, allows. */
export function levelOf({ spatial = 2, temporal = 2 }: Layer): number {
  return 2 * spatial + (temporal >= 2 ? 2 : 1);
}

export function layerOf(level: number): Layer {
  return { spatial: (level - 1) >> 1, temporal: level % 2 === 1 ? 1 : 2 };
}

/**
 * The level above. A smaller picture that moves well is better than a larger one that does not, so larger ones come at half
 * their frame rate only if the whole one is high.
 * @param highest no level above it is needed
 * @param frameRate pictures a second of the track; 0 if not known
 */
export function levelAbove(level: number, highest: number, frameRate: number): number {
  const isHalfNext = level % 2 === 0;
  const isSkipped = isHalfNext && frameRate < (HALF_FROM_FPS[level >> 1] ?? 0);
  return Math.min(highest, isSkipped ? level + 2 : level + 1);
}

/** Whether the line carries no more than the smallest pictures. @param levels of all tracks */
export function areSmallest(levels: Iterable<number>): boolean {
  return [...levels].every((level) => level <= SMALLEST);
}

/** Whether a higher level begins with a key frame: that of another layer, or of a track that was paused. */
export function isNewPicture(level = PAUSED, before = PAUSED): boolean {
  return level > before && (before === PAUSED || (level - 1) >> 1 > (before - 1) >> 1);
}

/**
 * The same picture at half or a quarter of its frame rate: the media server obeys at once, without a key frame. On a line
 * that carries only the smallest picture, half of a larger one that still comes would be too much.
 */
export function slowedLayerOf(level: number, isHalf: boolean): Layer {
  return { spatial: (level - 1) >> 1, temporal: isHalf && level > SMALLEST ? 1 : 0 };
}

/**
 * Bits per second that a level needs.
 * @param measured what levels of this track have needed, by level
 */
export function bpsOf(level: number, measured: readonly (number | undefined)[]): number {
  if (level === PAUSED) return 0;
  let nearest: number | undefined;
  let most = Infinity;
  for (const [known, bps] of measured.entries()) {
    if (bps === undefined || known === PAUSED) continue;
    if (known === level) return bps;
    if (known > level) most = Math.min(most, bps);
    if (nearest === undefined || Math.abs(known - level) < Math.abs(nearest - level)) nearest = known;
  }
  const relative = (at: number) => RELATIVE[at] ?? 1;
  const guessed =
    nearest === undefined
      ? HIGHEST_BPS * relative(level)
      : ((measured[nearest] ?? 0) * relative(level)) / relative(nearest);
  return Math.min(most, Math.max(guessed, AT_LEAST_BPS[level] ?? 0));
}
