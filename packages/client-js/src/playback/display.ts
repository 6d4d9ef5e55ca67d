import type { Display } from '../adaptation/receive-plan.js';

/** An element that shows a track, as observed last. */
export interface Shown {
  element: { readonly videoWidth?: number; readonly videoHeight?: number };
  /** Whether a part of it is in the window; undefined if that is not known yet. */
  isInView: boolean | undefined;
  /** In CSS pixels. */
  width: number;
  height: number;
}

export interface PageState {
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
export function displayOf(shown: readonly Shown[], page: PageState, before: Display | undefined): Display {
  const displays = shown.map((one) => displayOfOne(one, page, before));
  const visible = displays.filter(({ isHidden }) => !isHidden);
  const [first, ...others] = visible;
  // The layer stays, so that the track comes back as it was.
  if (first === undefined) return { maxSpatial: before?.maxSpatial ?? HIGHEST, isHidden: true, pixels: 0 };
  return others.reduce(
    (largest, one) => ({
      maxSpatial: Math.max(largest.maxSpatial ?? HIGHEST, one.maxSpatial ?? HIGHEST),
      isHidden: false,
      pixels: Math.max(largest.pixels, one.pixels),
    }),
    first,
  );
}

function displayOfOne(shown: Shown, page: PageState, before: Display | undefined): Display {
  const { element, isInView, width, height } = shown;
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
