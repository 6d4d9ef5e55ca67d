/** For sound, and for what the estimate of the network swings. */
const SPARE = { bitrate: 50_000, factor: 1.15 };
/** In measurements, one a second. */
const STARVED_FOR = 2;
const ENOUGH_FOR = 2;
/** A browser takes a few seconds to find the rate of the network. */
const SETTLES_WITHIN = 5;
/** Until the next attempt after one that did not last. It doubles with each. */
const HOLD = { first: 5, most: 40 };
/** A layer that stands in for better ones may have so much of its maximum. */
const STANDS_IN_WITH = 2;
/** A lone layer with less than the first part of its maximum is short. Its limit is then not below the second one. */
const SHORT_BELOW = 1 / 2;
const SHORT_LEAST = 1 / 4;
const MORE = 1.25;

export interface MeasuredLayer {
  maxBitrate: number;
  /** Bits per second; 0 while the browser does not send the layer. */
  targetBitrate: number;
  /** It may be sent: somebody receives it, and the uplink affords it. */
  isActive: boolean;
}

export function everyLayer(count: number) {
  return {
    /** The highest layer that may be sent; 0 is the lowest one. */
    top: count - 1,
    /** Measurements since `top` has changed. */
    age: 0,
    /** Measurements in a row in which the highest layer starved. */
    starved: 0,
    /** Measurements in a row in which there was enough for a higher layer. */
    enough: 0,
    /** Age at which a higher layer may be sent. */
    hold: 0,
    /** The highest layer gets less than it should, or stands in for better ones. */
    isShort: false,
    /** Its limit is lifted until the next measurement. */
    isLifted: false,
  };
}

export type Affordable = Readonly<ReturnType<typeof everyLayer>>;

/** The browser finds out the rate of the network anew, and layers that starve meanwhile say nothing. */
export function interrupted(state: Affordable): Affordable {
  return { ...state, age: 0, starved: 0, enough: 0, isLifted: false };
}

/**
 * Decides after each measurement. Browsers give a layer whatever the layers below leave over, at first 30 kbit/s: two
 * pictures a second. Receivers are then switched to it and back, and each switch costs a key frame of every layer. A layer
 * that is sent alone needs no decision: the browser sends a smaller picture in it.
 * @param layers the lowest first
 * @param wantedTop the highest layer that receivers want
 * @param availableBitrate of all media together, as the browser estimates it
 */
export function afterMeasurement(
  before: Affordable,
  layers: readonly MeasuredLayer[],
  wantedTop: number,
  availableBitrate: number,
): Affordable {
  const { top } = before;
  const aged = { ...before, age: before.age + 1, starved: 0, enough: 0, isShort: false, isLifted: false };
  if (isStarved(layers, top)) {
    // A layer that the browser has stopped leaves its receivers without a picture.
    const starved = layers[top]?.targetBitrate === 0 ? STARVED_FOR : before.starved + 1;
    if (starved < STARVED_FOR || aged.age < SETTLES_WITHIN) return { ...aged, starved };
    // It did not last, so the next attempt waits for longer.
    const isBrief = before.hold > 0 ? aged.age < 2 * before.hold : aged.age < 2 * HOLD.first;
    const hold = isBrief ? Math.min(Math.max(HOLD.first, 2 * before.hold), HOLD.most) : 0;
    // Layers that starve together go together: otherwise the picture would stand still until each had its turn.
    let lower = top - 1;
    while (isStarved(layers, lower, layers[top]?.targetBitrate)) lower -= 1;
    return { ...aged, top: lower, age: 0, hold };
  }
  let next = top;
  const highest = Math.min(wantedTop, layers.length - 1);
  while (next < highest && availableBitrate >= neededFor(layers, next + 1)) next += 1;
  const enough = next > top ? before.enough + 1 : 0;
  if (enough >= ENOUGH_FOR && aged.age >= before.hold) return { ...aged, top: next, age: 0 };
  const isShort = top < highest || isShortAlone(layers, top);
  return { ...aged, enough, isShort, isLifted: isShort && !before.isLifted };
}

/**
 * The layer gets less than the one below has at most, and so is worse than that one.
 * @param elsewise what it would get if it is not sent
 */
function isStarved(layers: readonly MeasuredLayer[], at: number, elsewise = Infinity): boolean {
  const isAlone = !layers.slice(0, at).some(({ isActive }) => isActive);
  const layer = layers[at];
  if (layer === undefined || isAlone) return false;
  return (layer.isActive ? layer.targetBitrate : elsewise) < (layers[at - 1]?.maxBitrate ?? 0);
}

function isShortAlone(layers: readonly MeasuredLayer[], at: number): boolean {
  const { isActive = false, targetBitrate = 0, maxBitrate = 0 } = layers[at] ?? {};
  return isActive && targetBitrate < SHORT_BELOW * maxBitrate;
}

/**
 * While the highest layer is short, its limit is lifted every other second. A browser that may send more than before looks
 * at once whether the network carries it, and finds the rate of a free line within two seconds. Without that it takes half
 * a minute.
 * @returns the limit of each layer, the lowest first
 */
export function limitsOf({ top, isShort, isLifted }: Affordable, layers: readonly MeasuredLayer[]): number[] {
  const total = layers.reduce((sum, { maxBitrate }) => sum + maxBitrate, 0);
  return layers.map(({ maxBitrate, targetBitrate }, at) => {
    if (at !== top || !isShort) return maxBitrate;
    const isBest = at === layers.length - 1;
    if (isLifted) return isBest ? maxBitrate : total;
    return Math.round(isBest ? Math.max(SHORT_LEAST * maxBitrate, MORE * targetBitrate) : STANDS_IN_WITH * maxBitrate);
  });
}

function neededFor(layers: readonly MeasuredLayer[], at: number): number {
  const below = layers.slice(0, at).reduce((sum, { maxBitrate, isActive }) => sum + (isActive ? maxBitrate : 0), 0);
  return (below + (layers[at - 1]?.maxBitrate ?? 0)) * SPARE.factor + SPARE.bitrate;
}
