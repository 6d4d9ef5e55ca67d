import type { Publisher } from '../peers/publisher.js';
import { afterMeasurement, everyLayer, interrupted, limitsOf, type Affordable } from './affordable-layers.js';
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
  bytesReceived?: number;
  availableOutgoingBitrate?: number;
}

interface Known {
  affordable: Affordable;
  /** Bytes that the connection has received so far: the reports of the media server. */
  received: number | undefined;
}

/** Leaves out the layers that the uplink does not afford, of the tracks that are sent in several layers. */
export class UplinkLayers {
  readonly #publisher: Pick<Publisher, 'senderOf' | 'tracks'>;
  readonly #layers: SentLayers;
  readonly #states = new WeakMap<RTCRtpSender, Known>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(publisher: Pick<Publisher, 'senderOf' | 'tracks'>, layers: SentLayers) {
    this.#publisher = publisher;
    this.#layers = layers;
  }

  /** Call this when a track is published. */
  begin(): void {
    if (this.#layered.length > 0) this.#timer ??= setInterval(() => this.#measureAll(), MEASURE_EVERY_MS);
  }

  /** Call this when the sender sends another track, or the same one anew: it begins with all layers. */
  reset(sender: RTCRtpSender): void {
    this.#states.delete(sender);
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
    const known = this.#states.get(sender);
    const before = known?.affordable ?? everyLayer(lowestFirst.length);
    const received = available?.bytesReceived;
    // No report arrives during a cut, and the browser sends less and less. The line may be as good as before afterwards.
    const isCut = received !== undefined && received === known?.received;
    const wanted = this.#layers.wantedOf(trackId);
    const now = isCut
      ? interrupted(before)
      : afterMeasurement(before, lowestFirst, wanted, available?.availableOutgoingBitrate ?? 0);
    this.#states.set(sender, { affordable: now, received });
    if (now.top !== before.top) await this.#layers.afford(trackId, now.top, limitsOf(now, lowestFirst).reverse());
  }
}
