import type { Publisher } from '../peers/publisher.js';
import type { LayersWantedMessage } from '../protocol.generated.js';
import { Serial } from '../serial.js';

/** Encodes no more layers than others receive, as the gateway reports it. */
export class SentLayers {
  readonly #publisher: Pick<Publisher, 'senderOf'>;
  readonly #serial = new Serial();
  /** The highest layer that is received of each track; null: none. */
  readonly #wanted = new Map<string, number | null>();

  constructor(publisher: Pick<Publisher, 'senderOf'>) {
    this.#publisher = publisher;
  }

  receive({ tracks }: Pick<LayersWantedMessage, 'tracks'>): void {
    for (const { trackId, maxSpatial } of tracks) {
      this.#wanted.set(trackId, maxSpatial);
      this.apply(trackId);
    }
  }

  /** Call this when another sender sends the track: it begins with all layers, until the gateway says otherwise. */
  begin(trackId: string): void {
    this.#wanted.delete(trackId);
    this.apply(trackId);
  }

  apply(trackId: string): void {
    void this.#serial.run(() => this.#apply(trackId)).catch(() => undefined);
  }

  async #apply(trackId: string): Promise<void> {
    const sender = this.#publisher.senderOf(trackId);
    if (sender === undefined) return;
    const parameters = sender.getParameters();
    const wanted = this.#wanted.get(trackId);
    if (!setActive(parameters.encodings, wanted === undefined ? Infinity : wanted)) return;
    await sender.setParameters(parameters);
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
