import { entriesOf, lostOf, type StatsEntry } from '../platform.js';
import type { QualityLevel, QualityRequest } from '../protocol.generated.js';
import type { Session } from '../signaling/session.js';

/** Also the shortest time between two reports to the gateway. */
const MEASURE_EVERY_MS = 2_000;

interface Measured {
  level: QualityLevel;
  quality: ConnectionQuality;
  isRelayed: boolean;
}

/** Measures the quality of this participant's own connections, and reports its changes to the gateway. */
export class OwnQuality {
  readonly #session: Session;
  readonly #connections: () => RTCPeerConnection[];
  readonly #onChange: (level: QualityLevel) => void;
  readonly #samples = new WeakMap<RTCPeerConnection, ConnectionSample>();
  readonly #timer: ReturnType<typeof setInterval>;
  #trend: QualityTrend | undefined;
  /** Last report to the present gateway. */
  #reported: string | undefined;

  constructor(session: Session, connections: () => RTCPeerConnection[], onChange: (level: QualityLevel) => void) {
    this.#session = session;
    this.#connections = connections;
    this.#onChange = onChange;
    this.#timer = setInterval(() => void this.#measure().catch(() => undefined), MEASURE_EVERY_MS);
  }

  get level(): QualityLevel | undefined {
    return this.#trend?.level;
  }

  /** The gateway that welcomes knows nothing yet. */
  welcomed(): void {
    this.#reported = undefined;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #measure(): Promise<void> {
    const all = await Promise.all(this.#connections().map((connection) => this.#measureOne(connection)));
    const measured = all.filter((one) => one !== undefined);
    // Without media there is nothing to report but the end of a bad connection.
    if (measured.length === 0 && this.#trend === undefined) return;
    const before = this.level;
    const worst = measured.reduce<QualityLevel>((level, one) => worse(level, one.level), 'good');
    this.#trend = nextTrend(this.#trend, worst);
    const { level } = this.#trend;
    this.#report(level, measured);
    if (level !== before) this.#onChange(level);
  }

  async #measureOne(connection: RTCPeerConnection): Promise<Measured | undefined> {
    const { connectionState } = connection;
    if (connectionState === 'disconnected' || connectionState === 'failed')
      return { level: 'lost', quality: {}, isRelayed: false };
    if (connectionState !== 'connected') return undefined;
    const now = sampleOf(await connection.getStats());
    const before = this.#samples.get(connection);
    this.#samples.set(connection, now);
    if (before === undefined) return undefined;
    const quality = qualityBetween(before, now);
    return { level: levelOf(quality), quality, isRelayed: now.isRelayed };
  }

  #report(level: QualityLevel, measured: readonly Measured[]): void {
    const relay = measured.some(({ isRelayed }) => isRelayed);
    const report = `${level} ${relay}`;
    if (report === this.#reported || this.#session.state !== 'connected') return;
    this.#reported = report;
    const message: QualityRequest = { type: 'quality', level, relay };
    for (const field of ['lossPercent', 'roundTripMs', 'jitterMs'] as const) {
      const values = measured.flatMap(({ quality }) => quality[field] ?? []);
      if (values.length > 0) message[field] = Math.min(Math.round(Math.max(...values) * 10) / 10, 60_000);
    }
    this.#session.post(message);
  }
}

/** How well media passes in one direction. Undefined values were not measured. */
export interface ConnectionQuality {
  lossPercent?: number | undefined;
  roundTripMs?: number | undefined;
  jitterMs?: number | undefined;
}

const LEVELS: readonly QualityLevel[] = ['good', 'fair', 'poor', 'lost'];
/** The level improves after as many better measurements in a row, so that it does not flicker. */
const BETTER_IN_A_ROW = 3;

/**
 * Rates a connection as the E-model of ITU-T G.107 rates a telephone call: a score up to 93, from which delay and loss take
 * away. Jitter counts twice, because the receiver's buffer grows with it.
 */
export function levelOf({ lossPercent = 0, roundTripMs = 0, jitterMs = 0 }: ConnectionQuality): QualityLevel {
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

export type ConnectionSample = ReturnType<typeof sampleOf>;

export function sampleOf(report: RTCStatsReport) {
  const entries = entriesOf(report);
  const of = (type: string) => entries.filter((entry) => entry.type === type);
  const sum = (type: string, counted: (entry: StatsEntry) => number | undefined) =>
    of(type).reduce((total, entry) => total + (counted(entry) ?? 0), 0);
  const seconds = [...of('inbound-rtp'), ...of('remote-inbound-rtp')].flatMap(({ jitter }) => jitter ?? []);
  const pair = of('candidate-pair').find(({ nominated, state }) => nominated === true && state === 'succeeded');
  const local = entries.find(({ id }) => id === pair?.localCandidateId);
  return {
    sent: sum('outbound-rtp', ({ packetsSent }) => packetsSent),
    // As the receiver reports it.
    sentLost: sum('remote-inbound-rtp', ({ packetsLost }) => packetsLost),
    received: sum('inbound-rtp', ({ packetsReceived }) => packetsReceived),
    receivedLost: sum('inbound-rtp', lostOf),
    roundTripMs: pair?.currentRoundTripTime === undefined ? undefined : pair.currentRoundTripTime * 1000,
    jitterMs: seconds.length === 0 ? undefined : Math.max(...seconds) * 1000,
    isRelayed: local?.candidateType === 'relay',
  };
}

export function qualityBetween(before: ConnectionSample, now: ConnectionSample): ConnectionQuality {
  const sending = percentOf(now.sentLost - before.sentLost, now.sent - before.sent);
  const receivedLost = now.receivedLost - before.receivedLost;
  const receiving = percentOf(receivedLost, now.received - before.received + receivedLost);
  return {
    lossPercent: Math.max(sending, receiving),
    roundTripMs: now.roundTripMs,
    jitterMs: now.jitterMs,
  };
}

function percentOf(lost: number, all: number): number {
  return all <= 0 ? 0 : Math.min(100, Math.max(0, (100 * lost) / all));
}
