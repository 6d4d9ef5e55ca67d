import type { QualityLevel } from '../protocol.generated.js';

/** How well media passes in one direction. Undefined values were not measured. */
export interface LineQuality {
  /** Lost packets in percent of the sent ones. */
  lossPercent?: number | undefined;
  roundTripMs?: number | undefined;
  jitterMs?: number | undefined;
}

/** From the best to the worst. */
const LEVELS: readonly QualityLevel[] = ['good', 'fair', 'poor', 'lost'];
/** The level improves after as many better measurements in a row, so that it does not flicker. */
const BETTER_IN_A_ROW = 3;

/**
 * Rates a line as the E-model of ITU-T G.107 rates a telephone call: a score up to 93, from which delay and loss take
 * away. Jitter counts twice, because the receiver's buffer grows with it.
 */
export function levelOf({ lossPercent = 0, roundTripMs = 0, jitterMs = 0 }: LineQuality): QualityLevel {
  const delayMs = roundTripMs / 2 + 2 * jitterMs + 10;
  const delayImpairment = delayMs < 160 ? delayMs / 40 : (delayMs - 120) / 10;
  const score = 93.2 - delayImpairment - 2.5 * lossPercent;
  if (score >= 80) return 'good';
  return score >= 60 ? 'fair' : 'poor';
}

export function worse(a: QualityLevel, b: QualityLevel): QualityLevel {
  return LEVELS.indexOf(a) > LEVELS.indexOf(b) ? a : b;
}

export interface QualityTrend {
  level: QualityLevel;
  /** Measurements in a row that were better than the level. */
  betterInARow: number;
}

/** A worse measurement counts at once, a better one only if others follow. */
export function nextTrend(trend: QualityTrend | undefined, measured: QualityLevel): QualityTrend {
  if (trend === undefined || worse(trend.level, measured) === measured) return { level: measured, betterInARow: 0 };
  const betterInARow = trend.betterInARow + 1;
  if (betterInARow < BETTER_IN_A_ROW) return { level: trend.level, betterInARow };
  return { level: measured, betterInARow: 0 };
}
