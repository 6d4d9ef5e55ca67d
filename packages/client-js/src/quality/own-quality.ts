import type { QualityLevel, QualityRequest } from '../protocol.generated.js';
import type { Session } from '../signaling/session.js';
import { qualityBetween, sampleOf, type LineSample } from './line-sample.js';
import { levelOf, nextTrend, worse, type LineQuality, type QualityTrend } from './quality-level.js';

/** Also the shortest time between two reports to the gateway. */
const MEASURE_EVERY_MS = 2_000;

export interface OwnQualityContext {
  session: Session;
  /** The present peer connections. */
  connections: () => RTCPeerConnection[];
  onChange: (level: QualityLevel) => void;
}

interface Measured {
  level: QualityLevel;
  line: LineQuality;
  isRelayed: boolean;
}

/** Measures the quality of this participant's own connections, and reports its changes to the gateway. */
export class OwnQuality {
  readonly #context: OwnQualityContext;
  readonly #samples = new WeakMap<RTCPeerConnection, LineSample>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #trend: QualityTrend | undefined;
  /** What the present gateway knows. */
  #reported: string | undefined;

  constructor(context: OwnQualityContext) {
    this.#context = context;
  }

  /** Undefined until media has flowed. */
  get level(): QualityLevel | undefined {
    return this.#trend?.level;
  }

  /** Begins, or begins again with a gateway that knows nothing yet. */
  welcomed(): void {
    this.#reported = undefined;
    this.#timer ??= setInterval(() => void this.#measure().catch(() => undefined), MEASURE_EVERY_MS);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #measure(): Promise<void> {
    const all = await Promise.all(this.#context.connections().map((connection) => this.#measureOne(connection)));
    const measured = all.filter((one) => one !== undefined);
    // Without media there is nothing to report but the end of a bad line.
    if (measured.length === 0 && this.#trend === undefined) return;
    const before = this.level;
    const worst = measured.reduce<QualityLevel>((level, one) => worse(level, one.level), 'good');
    this.#trend = nextTrend(this.#trend, worst);
    const { level } = this.#trend;
    this.#report(level, measured);
    if (level !== before) this.#context.onChange(level);
  }

  async #measureOne(connection: RTCPeerConnection): Promise<Measured | undefined> {
    const { connectionState } = connection;
    if (connectionState === 'disconnected' || connectionState === 'failed')
      return { level: 'lost', line: {}, isRelayed: false };
    if (connectionState !== 'connected') return undefined;
    const now = sampleOf(await connection.getStats());
    const before = this.#samples.get(connection);
    this.#samples.set(connection, now);
    if (before === undefined) return undefined;
    const line = qualityBetween(before, now);
    return { level: levelOf(line), line, isRelayed: now.isRelayed };
  }

  #report(level: QualityLevel, measured: readonly Measured[]): void {
    const { session } = this.#context;
    const relay = measured.some(({ isRelayed }) => isRelayed);
    const report = `${level} ${relay}`;
    if (report === this.#reported || session.state !== 'connected') return;
    this.#reported = report;
    const message: QualityRequest = { type: 'quality', level, relay };
    for (const field of ['lossPercent', 'roundTripMs', 'jitterMs'] as const) {
      const values = measured.flatMap(({ line }) => line[field] ?? []);
      if (values.length > 0) message[field] = Math.min(Math.round(Math.max(...values) * 10) / 10, 60_000);
    }
    session.post(message);
  }
}
