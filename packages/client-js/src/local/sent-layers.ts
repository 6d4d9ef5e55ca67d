import type { Publisher } from '../peers/publisher.js';
import { entriesOf } from '../platform.js';
import type { LayersWantedMessage } from '../protocol.generated.js';
import { Serial } from '../wait.js';
import type { LocalTrack } from './local-track.js';
import { resetEncodings } from './sending.js';
import { afterMeasurement, everyLayer, interrupted, limitsOf, type Affordable } from './uplink.js';

const MEASURE_EVERY_MS = 1_000;

interface Measured {
  affordable: Affordable;
  /** Bytes that the connection has received so far: the reports of the media server. */
  received: number | undefined;
  limits: readonly number[];
}

/** Encodes the layers that others receive, as the gateway reports it, and that the uplink affords. */
export class SentLayers {
  readonly #serial = new Serial();
  readonly #wanted = new Map<string, readonly number[]>();
  /** Encodings of sections whose media has got another size. Inactive ones are not used. */
  readonly #fitted = new Map<string, RTCRtpEncodingParameters[]>();
  /** By track id, for tracks that are sent in several layers. */
  readonly #measured = new Map<string, Measured>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly publisher: Pick<Publisher, 'senderOf' | 'tracks'>) {}

  receive({ tracks }: Pick<LayersWantedMessage, 'tracks'>): void {
    for (const { trackId, layers } of tracks) {
      this.#wanted.set(trackId, layers);
      this.#apply(trackId);
    }
  }

  /** Call this when another section sends the track: it begins with all layers, until the gateway says otherwise. */
  begin(trackId: string): void {
    this.#wanted.delete(trackId);
    this.#fitted.delete(trackId);
    this.#measured.delete(trackId);
    this.#apply(trackId);
  }

  /** Call this when the section of the track carries media of another size. */
  fit({ trackId, encodings: first = [] }: LocalTrack, encodings: RTCRtpEncodingParameters[]): void {
    if (planOf(this.#fitted.get(trackId) ?? first) === planOf(encodings)) return;
    this.#fitted.set(trackId, encodings);
    this.#measured.delete(trackId);
    const change = async () => {
      const sender = this.publisher.senderOf(trackId);
      if (sender !== undefined) await resetEncodings(sender, encodings);
    };
    this.#serial.run(change).catch(() => undefined);
    this.#apply(trackId);
    this.measure();
  }

  measure(): void {
    if (this.#layered.length > 0) this.#timer ??= setInterval(() => this.#measureAll(), MEASURE_EVERY_MS);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  get #layered(): LocalTrack[] {
    return [...this.publisher.tracks.values()].filter((track) => {
      const encodings = this.#usedOf(track);
      return encodings.length > 1 && encodings.every(({ maxBitrate }) => maxBitrate !== undefined);
    });
  }

  /** The encodings that carry the track, the best one first. */
  #usedOf({ trackId, encodings = [] }: LocalTrack): RTCRtpEncodingParameters[] {
    return (this.#fitted.get(trackId) ?? encodings).filter(({ active }) => active !== false);
  }

  #measureAll(): void {
    const tracks = this.#layered;
    if (tracks.length === 0) this.close();
    for (const track of tracks) void this.#measure(track).catch(() => undefined);
  }

  async #measure(track: LocalTrack): Promise<void> {
    const { trackId, muted } = track;
    const encodings = this.#usedOf(track);
    const sender = this.publisher.senderOf(trackId);
    if (sender === undefined || muted) return;
    const entries = entriesOf(await sender.getStats());
    if (sender !== this.publisher.senderOf(trackId)) return;
    const sent = entries.filter(({ type }) => type === 'outbound-rtp');
    const available = entries.find(({ type, nominated }) => type === 'candidate-pair' && nominated === true);
    // Nothing is sent yet, the browser does not report rates, or the processor is what is too slow.
    if (!sent.some(({ targetBitrate = 0 }) => targetBitrate > 0)) return;
    if (sent.some(({ qualityLimitationReason }) => qualityLimitationReason === 'cpu')) return;
    const active = this.#sentOf(trackId, encodings.length);
    const lowestFirst = [...encodings].reverse().map(({ rid, maxBitrate = 0 }, layer) => ({
      maxBitrate,
      targetBitrate: sent.find((one) => one.rid === rid)?.targetBitrate ?? 0,
      isActive: active.has(layer),
    }));
    const known = this.#measured.get(trackId);
    const before = known?.affordable ?? everyLayer(lowestFirst.length);
    const received = available?.bytesReceived;
    // No report arrives during a cut, and the browser sends less and less. The line may be as good as before afterwards.
    const isCut = received !== undefined && received === known?.received;
    const highestWanted = Math.max(...(this.#wanted.get(trackId) ?? [Infinity]));
    const now = isCut
      ? interrupted(before)
      : afterMeasurement(before, lowestFirst, highestWanted, available?.availableOutgoingBitrate ?? 0);
    const limits = limitsOf(now, lowestFirst).reverse();
    const limitsBefore = known?.limits ?? encodings.map(({ maxBitrate = 0 }) => maxBitrate);
    this.#measured.set(trackId, { affordable: now, received, limits });
    if (now.top !== before.top || String(limits) !== String(limitsBefore)) this.#apply(trackId, limits);
  }

  /**
   * Those who want a layer that is not affordable, or that the track does not have, get the highest one below it.
   * @param count the number of layers of the section
   * @returns the layers to send
   */
  #sentOf(trackId: string, count: number): Set<number> {
    const used = this.#fitted.get(trackId)?.filter(({ active }) => active !== false).length ?? count;
    const top = Math.min(used - 1, this.#measured.get(trackId)?.affordable.top ?? Infinity);
    const wanted = this.#wanted.get(trackId) ?? Array.from({ length: count }, (_, layer) => layer);
    return new Set(wanted.map((layer) => Math.min(layer, top)));
  }

  /**
   * Sends the layers that are wanted and affordable. One change after another: browsers refuse parameters that were read
   * earlier.
   * @param limits the maximum bit rate of each encoding, if it has changed
   */
  #apply(trackId: string, limits: readonly number[] = []): void {
    const change = async () => {
      const sender = this.publisher.senderOf(trackId);
      const parameters = sender?.getParameters();
      if (parameters === undefined) return;
      const { encodings } = parameters;
      const sent = this.#sentOf(trackId, encodings.length);
      let hasChanged = limits.length > 0;
      for (const [at, encoding] of encodings.entries()) {
        // The limits are those of the used layers, which are the last ones.
        const limit = limits[at - (encodings.length - limits.length)];
        if (limit !== undefined) encoding.maxBitrate = limit;
        // The last encoding is layer 0.
        const active = sent.has(encodings.length - 1 - at);
        hasChanged ||= active !== (encoding.active ?? true);
        encoding.active = active;
      }
      if (hasChanged) await sender?.setParameters(parameters);
    };
    this.#serial.run(change).catch(() => undefined);
  }
}

function planOf(encodings: readonly RTCRtpEncodingParameters[]): string {
  return JSON.stringify(
    encodings.map(({ active = true, scaleResolutionDownBy = 1, maxBitrate, maxFramerate }) =>
      active ? [scaleResolutionDownBy, maxBitrate, maxFramerate] : [],
    ),
  );
}
