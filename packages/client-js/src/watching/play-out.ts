import type { Line } from './line.js';
import { withSample, type Packets } from './signs.js';
import type { DownlinkState } from './state.js';

/** From this loss at first on, sound and picture wait for repeated packets, and for this time after it. */
const LOSS_FROM = 0.005;
const KEPT_MS = 10_000;
/** Such a packet comes a round trip later, and a loss is noticed only with the packets after it. */
const EXTRA_MS = 100;
/** Above this loss, many repeated packets are lost, too, and playback waits this much longer for the second repeat. */
const LOSS_TWICE_FROM = 0.05;
const TWICE_MS = 200;
const MOST_MS = 600;
/** Smaller changes of the round trip are not worth a change of the speed of the sound. */
const STEP_MS = 50;

/**
 * Delays what is played while packets are sent again. Browsers do not do so by themselves: a connection that only receives
 * does not know its round trip, and drops packets that come after it as too late.
 */
export class PlayOut {
  #packets: Packets = [];
  #untilMs = -Infinity;
  #twiceUntilMs = -Infinity;
  #targetMs: number | null = null;

  /**
   * @param line undefined if nothing arrives
   * @param roundTripMs undefined in browsers that do not tell it
   */
  update(
    receivers: readonly RTCRtpReceiver[],
    line: Pick<Line, 'packets' | 'lossAtFirst'> | undefined,
    { budget, signs: { harmlessLoss } }: Pick<DownlinkState, 'budget' | 'signs'>,
    roundTripMs: number | undefined,
    nowMs: number,
  ): void {
    let sureLoss = 0;
    if (line !== undefined) {
      const { packets: sent, lossAtFirst } = line;
      ({ packets: this.#packets, sureLoss } = withSample(this.#packets, {
        atMs: nowMs,
        sent,
        lost: lossAtFirst * sent,
      }));
    }
    // A slow line loses packets to its queue, and repeated packets would wait in the same queue.
    const isItsOwn = budget.name === 'free' || harmlessLoss > LOSS_FROM;
    if (isItsOwn && sureLoss > LOSS_FROM) this.#untilMs = nowMs + KEPT_MS;
    if (isItsOwn && sureLoss > LOSS_TWICE_FROM) this.#twiceUntilMs = nowMs + KEPT_MS;
    const extraMs = EXTRA_MS + (nowMs < this.#twiceUntilMs ? TWICE_MS : 0);
    const isLossy = nowMs < this.#untilMs && roundTripMs !== undefined;
    const targetMs = isLossy ? Math.min(MOST_MS, roundTripMs + extraMs) : null;
    const isNews = targetMs === null || this.#targetMs === null || Math.abs(targetMs - this.#targetMs) >= STEP_MS;
    if (isNews) this.#targetMs = targetMs;
    for (const receiver of receivers) {
      if ('jitterBufferTarget' in receiver && receiver.jitterBufferTarget !== this.#targetMs)
        receiver.jitterBufferTarget = this.#targetMs;
    }
  }
}
