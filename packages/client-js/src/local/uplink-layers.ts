import type { Publisher } from '../peers/publisher.js';
import { afterMeasurement, everyLayer, limitsOf, type Affordable } from './affordable-layers.js';
import type { LocalTrack } from './local-track.js';
import type { SentLayers } from './sent-layers.js';

const MEASURE_EVERY_MS = 1_000;

/** The fields of WebRTC's statistics that are read here. */
interface Entry {
  type: string;
  rid?: string;
  targetBitrate?: number;
  qualityLimitationReason?: string;
  nominated?: boolean;
  availableOutgoingBitrate?: number;
}

/** Leaves out the layers that the uplink does not afford, of the tracks that are sent in several layers. */
export class UplinkLayers {
  readonly #publisher: Pick<Publisher, 'senderOf' | 'tracks'>;
  readonly #layers: SentLayers;
  readonly #states = new WeakMap<RTCRtpSender, Affordable>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(publisher: Pick<Publisher, 'senderOf' | 'tracks'>, layers: SentLayers) {
    this.#publisher = publisher;
    this.#layers = layers;
  }

  /** Call this when a track is published. */
  begin(): void {
    if (this.#layered.length > 0) this.#timer ??= setInterval(() => this.#measureAll(), MEASURE_EVERY_MS);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  get #layered(): LocalTrack[] {
    return [...this.#publisher.tracks.values()].filter(
      ({ encodings = [] }) => encodings.length > 1 && encodings.every(({ maxBitrate }) => maxBitrate !== undefined),
    );
  }

  #measureAll(): void {
    const tracks = this.#layered;
    if (tracks.length === 0) this.close();
    for (const track of tracks) void this.#measure(track).catch(() => undefined);
  }

  async #measure({ trackId, encodings = [], muted }: LocalTrack): Promise<void> {
    const sender = this.#publisher.senderOf(trackId);
    if (sender === undefined || muted) return;
    const entries = [...((await sender.getStats()) as unknown as Map<string, Entry>).values()];
    const sent = entries.filter(({ type }) => type === 'outbound-rtp');
    const available = entries.find(({ type, nominated }) => type === 'candidate-pair' && nominated === true);
    // Nothing is sent yet, the browser does not report rates, or the processor is what is too slow.
    if (!sent.some(({ targetBitrate = 0 }) => targetBitrate > 0)) return;
    if (sent.some(({ qualityLimitationReason }) => qualityLimitationReason === 'cpu')) return;
    const lowestFirst = [...encodings].reverse().map(({ rid, maxBitrate = 0 }) => ({
      maxBitrate,
      targetBitrate: sent.find((one) => one.rid === rid)?.targetBitrate ?? 0,
    }));
    const before = this.#states.get(sender) ?? everyLayer(lowestFirst.length);
    const wanted = this.#layers.wantedOf(trackId);
    const now = afterMeasurement(before, lowestFirst, wanted, available?.availableOutgoingBitrate ?? 0);
    this.#states.set(sender, now);
    if (now.top !== before.top) await this.#layers.afford(trackId, now.top, limitsOf(now, lowestFirst).reverse());
  }
}
