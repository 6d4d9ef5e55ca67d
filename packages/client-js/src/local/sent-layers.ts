import type { Publisher } from '../peers/publisher.js';
import type { LayersWantedMessage } from '../protocol.generated.js';
import { Serial } from '../serial.js';

/** Encodes no more layers than others receive, as the gateway reports it, and than the uplink affords. */
export class SentLayers {
  readonly #publisher: Pick<Publisher, 'senderOf'>;
  readonly #serial = new Serial();
  /** The highest layer that is received of each track; null: none. */
  readonly #wanted = new Map<string, number | null>();
  /** The highest layer that the uplink affords of each track. */
  readonly #affordable = new Map<string, number>();

  constructor(publisher: Pick<Publisher, 'senderOf'>) {
    this.#publisher = publisher;
  }

  receive({ tracks }: Pick<LayersWantedMessage, 'tracks'>): void {
    for (const { trackId, maxSpatial } of tracks) {
      this.#wanted.set(trackId, maxSpatial);
      this.apply(trackId);
    }
  }

  /** What others receive is not known any more: sends all layers, until the gateway says otherwise. */
  forgetWanted(): void {
    const trackIds = [...this.#wanted.keys()];
    this.#wanted.clear();
    for (const trackId of trackIds) this.apply(trackId);
  }

  /** Call this when another sender sends the track: it begins with all layers, until the gateway says otherwise. */
  begin(trackId: string): void {
    this.#wanted.delete(trackId);
    this.#affordable.delete(trackId);
    this.apply(trackId);
  }

  /** The highest layer that is received; -1: none, and infinite before the gateway has said so. */
  wantedOf(trackId: string): number {
    const wanted = this.#wanted.get(trackId);
    return wanted === undefined ? Infinity : (wanted ?? -1);
  }

  /**
   * Sends no layer above `top` from now on.
   * @param limits the maximum bit rate of each encoding
   */
  afford(trackId: string, top: number, limits: readonly number[]): Promise<void> {
    this.#affordable.set(trackId, top);
    return this.#change(trackId, (encodings) => {
      for (const [at, encoding] of encodings.entries()) {
        const limit = limits[at];
        if (limit !== undefined) encoding.maxBitrate = limit;
      }
      this.#setActive(trackId, encodings);
      return true;
    });
  }

  apply(trackId: string): void {
    void this.#change(trackId, (encodings) => this.#setActive(trackId, encodings)).catch(() => undefined);
  }

  #setActive(trackId: string, encodings: RTCRtpEncodingParameters[]): boolean {
    const top = Math.min(this.wantedOf(trackId), this.#affordable.get(trackId) ?? Infinity);
    return setActive(encodings, top < 0 ? null : top);
  }

  /** One change after another: browsers refuse parameters that were read earlier. */
  #change(trackId: string, change: (encodings: RTCRtpEncodingParameters[]) => boolean): Promise<void> {
    return this.#serial.run(async () => {
      const sender = this.#publisher.senderOf(trackId);
      const parameters = sender?.getParameters();
      if (parameters !== undefined && change(parameters.encodings)) await sender?.setParameters(parameters);
    });
  }
}

/**
 * Activates the encodings up to the layer. The last encoding is layer 0.
 * @returns whether anything has changed
 */
export function setActive(encodings: RTCRtpEncodingParameters[], wanted: number | null): boolean {
  let hasChanged = false;
  for (const [at, encoding] of encodings.entries()) {
    const layer = encodings.length - 1 - at;
    // The lowest layer is there for each receiver, whatever it asks for.
    const active = wanted !== null && layer <= wanted;
    if ((encoding.active ?? true) === active) continue;
    encoding.active = active;
    hasChanged = true;
  }
  return hasChanged;
}
