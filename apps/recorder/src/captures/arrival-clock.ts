/** Packets of this time share a smallest delay, in milliseconds. */
const WINDOW_MS = 10_000;
/** After a pause in the arrival that RTP time does not show as well, the clocks are compared anew, in milliseconds. */
const PAUSE_MS = 400;
const JUMP_MS = 60;

/** The smallest delay of a window, and the RTP time at which it was seen. */
interface Point {
  delayMs: number;
  atMs: number;
  /** Arrival of the first and the last packet of the window. */
  fromMs: number;
  untilMs: number;
}

interface Stretch {
  /** RTP time of its first packet. */
  fromMs: number;
  points: Point[];
}

/**
 * Maps RTP time to the time of arrival. RTP time has no jitter, but stands still while a browser pauses a track; arrival
 * has jitter and never stands still. So a packet's time is its RTP time plus the smallest delay around it, which takes
 * away jitter and follows the drift of the sender's clock.
 */
export class ArrivalClock {
  readonly #stretches: Stretch[] = [];
  #last: { arrivalMs: number; delayMs: number } | null = null;

  /** Call it for every packet in the order of arrival. */
  add(arrivalMs: number, rtpMs: number): void {
    const delayMs = arrivalMs - rtpMs;
    const last = this.#last;
    const isNew =
      last === null || (arrivalMs - last.arrivalMs > PAUSE_MS && Math.abs(delayMs - last.delayMs) > JUMP_MS);
    if (isNew) this.#stretches.push({ fromMs: rtpMs, points: [] });
    this.#last = { arrivalMs, delayMs };
    const points = this.#stretches.at(-1)?.points ?? [];
    const point = points.at(-1);
    if (point === undefined || arrivalMs - point.fromMs >= WINDOW_MS) {
      points.push({ delayMs, atMs: rtpMs, fromMs: arrivalMs, untilMs: arrivalMs });
      return;
    }
    point.untilMs = Math.max(point.untilMs, arrivalMs);
    if (delayMs < point.delayMs) Object.assign(point, { delayMs, atMs: rtpMs });
  }

  /** The time of arrival without jitter, in milliseconds since the first packet. */
  at(rtpMs: number): number {
    const stretch = this.#stretches.findLast(({ fromMs }) => fromMs <= rtpMs + 1) ?? this.#stretches[0];
    if (stretch === undefined) throw new Error('the clock has seen no packet');
    const points = complete(stretch.points);
    const next = points.findIndex(({ atMs }) => atMs >= rtpMs);
    const [before, after] = next === -1 ? [points.at(-1), undefined] : [points[next - 1], points[next]];
    if (before === undefined || after === undefined) return rtpMs + ((before ?? after)?.delayMs ?? 0);
    const share = (rtpMs - before.atMs) / (after.atMs - before.atMs || 1);
    return rtpMs + before.delayMs + share * (after.delayMs - before.delayMs);
  }
}

/** Without a last window that is so short that its packets may all have been late. */
function complete(points: readonly Point[]): readonly Point[] {
  const last = points.at(-1);
  const isShort = last !== undefined && points.length > 1 && last.untilMs - last.fromMs < WINDOW_MS / 2;
  return isShort ? points.slice(0, -1) : points;
}
