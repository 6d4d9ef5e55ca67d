/** A layer that gets less than this part of its maximum has a few pictures a second, and is worse than the one below. */
const STARVED_BELOW = 1 / 8;
/** A layer begins with this part of its maximum. */
const BEGINS_WITH = 1 / 4;
/** For sound, and for what the estimate of the network swings. */
const SPARE = { bitrate: 50_000, factor: 1.15 };
/** A layer with this part of its limit is not held back by the network: the estimate follows what is sent. */
const FULL_FROM = 0.85;
/** In measurements, one a second. */
const STARVED_FOR = 2;
const ENOUGH_FOR = 3;
/** A browser takes a few seconds to find the rate of the network. */
const SETTLES_WITHIN = 5;
const HOLD = { first: 5, most: 40 };

/** What a browser tells about one layer. */
export interface MeasuredLayer {
  /** As it was published. */
  maxBitrate: number;
  /** Bits per second; 0 while the browser does not send the layer. */
  targetBitrate: number;
}

/** Which layers the uplink affords. */
export interface Affordable {
  /** The highest layer that may be sent; 0 is the lowest one. */
  readonly top: number;
  /** Measurements since `top` has changed. */
  readonly age: number;
  /** Measurements in a row in which the highest layer starved. */
  readonly starved: number;
  /** Measurements in a row in which there was enough for the next layer. */
  readonly enough: number;
  /** Measurements until the next attempt to send one layer more. */
  readonly hold: number;
  /** The highest layer was added, and not left over when higher ones starved. */
  readonly isAdded: boolean;
}

export function everyLayer(count: number): Affordable {
  return { top: count - 1, age: 0, starved: 0, enough: 0, hold: HOLD.first, isAdded: false };
}

/** The browser finds out the rate of the network anew, and layers that starve meanwhile say nothing. */
export function interrupted(state: Affordable): Affordable {
  return { ...state, age: 0, starved: 0, enough: 0 };
}

/**
 * Decides after each measurement. Browsers give a layer whatever the layers below leave over, at first 30 kbit/s: two
 * pictures a second. Receivers are then switched to it and back, and each switch costs a key frame of every layer.
 * @param layers the lowest first
 * @param sentTop the highest layer that receivers want
 * @param availableBitrate of all media together, as the browser estimates it
 */
export function afterMeasurement(
  before: Affordable,
  layers: readonly MeasuredLayer[],
  sentTop: number,
  availableBitrate: number,
): Affordable {
  const aged = { ...before, age: before.age + 1, starved: 0, enough: 0 };
  const { top } = before;
  const highest = layers[top];
  if (top > 0 && top <= sentTop && isStarved(highest)) {
    const starved = before.starved + 1;
    if (starved < STARVED_FOR || aged.age < SETTLES_WITHIN) return { ...aged, starved };
    // It did not last, so the next attempt waits for longer.
    const isBrief = aged.age < 2 * before.hold;
    const hold = isBrief ? Math.min(2 * before.hold, HOLD.most) : HOLD.first;
    // Layers that starve together go together: otherwise the picture would stand still until each had its turn.
    let lower = top - 1;
    while (lower > 0 && isStarved(layers[lower])) lower -= 1;
    return { ...aged, top: lower, age: 0, hold, isAdded: false };
  }
  const isFull = (highest?.targetBitrate ?? 0) >= (limitsOf(before, layers)[top] ?? 0) * FULL_FROM;
  const isEnough = isFull || availableBitrate >= neededFor(layers, top + 1);
  if (top + 1 >= layers.length || !isEnough) return aged;
  const enough = before.enough + 1;
  // A layer that was added and is full shows a free line: the next one need not wait.
  const hold = before.isAdded && isFull ? 0 : before.hold;
  if (enough < ENOUGH_FOR || aged.age < hold) return { ...aged, enough };
  return { ...aged, top: top + 1, age: 0, isAdded: true };
}

function isStarved({ targetBitrate, maxBitrate }: MeasuredLayer = { targetBitrate: 0, maxBitrate: 0 }): boolean {
  return targetBitrate < maxBitrate * STARVED_BELOW;
}

/**
 * The highest layer gets a higher limit while a better one is left out. Otherwise the browser would send too little to
 * find out whether there is enough for the better one.
 * @returns the limit of each layer, the lowest first
 */
export function limitsOf({ top }: Affordable, layers: readonly MeasuredLayer[]): number[] {
  const next = layers[top + 1]?.maxBitrate ?? 0;
  return layers.map(({ maxBitrate }, at) => Math.round(maxBitrate + (at === top ? next * BEGINS_WITH : 0)));
}

function neededFor(layers: readonly MeasuredLayer[], at: number): number {
  const below = layers.slice(0, at).reduce((sum, { maxBitrate }) => sum + maxBitrate, 0);
  return (below + (layers[at]?.maxBitrate ?? 0) * BEGINS_WITH) * SPARE.factor + SPARE.bitrate;
}
