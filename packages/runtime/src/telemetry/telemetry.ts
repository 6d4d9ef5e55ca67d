import { inTime } from '@callplane/core';
import type { Logger } from '../logging/logger.js';
import type { Metrics } from '../metrics/metrics.js';
import type { Sdk, SdkSettings } from './sdk.js';
import { setSpanMaker } from './spans.js';

/** How long the end of a process waits for the last export, in milliseconds. */
const LAST_EXPORT_MS = 2000;

export type TelemetryConfig = Omit<SdkSettings, 'app'>;

export interface TelemetryDeps {
  logger: Logger;
  metrics: Metrics;
  /** Loads the SDK; tests count the calls. */
  load?: () => Promise<{ startSdk(settings: SdkSettings, deps: TelemetryDeps): Sdk }>;
}

/**
 * OpenTelemetry of one process: traces, metrics and logs over OTLP. Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set. Then
 * no file of the SDK is loaded.
 */
export class Telemetry {
  /** Resolves once spans are made, or it is clear that they are not. Never rejects. */
  readonly ready: Promise<void>;
  #sdk: Sdk | null = null;

  constructor(app: string, config: TelemetryConfig, deps: TelemetryDeps) {
    const isOn = (config.OTEL_EXPORTER_OTLP_ENDPOINT ?? '') !== '' && config.OTEL_SDK_DISABLED !== true;
    this.ready = isOn ? this.#start({ ...config, app }, deps) : Promise.resolve();
  }

  /** Exports the rest, for at most {@link LAST_EXPORT_MS}. Never rejects. Idempotent. */
  async close(): Promise<void> {
    await this.ready;
    const sdk = this.#sdk;
    if (sdk === null) return;
    this.#sdk = null;
    setSpanMaker(null);
    await inTime(sdk.close(), LAST_EXPORT_MS, () => new Error('late')).catch(() => undefined);
  }

  async #start(settings: SdkSettings, deps: TelemetryDeps): Promise<void> {
    const { logger, load = () => import('./sdk.js') } = deps;
    try {
      const { startSdk } = await load();
      this.#sdk = startSdk(settings, deps);
      setSpanMaker(this.#sdk.startSpan);
      logger.info('telemetry started', { endpoint: 'OTEL_EXPORTER_OTLP_ENDPOINT' });
    } catch (error) {
      // An app works without its telemetry.
      logger.error('telemetry not started', { error });
    }
  }
}
