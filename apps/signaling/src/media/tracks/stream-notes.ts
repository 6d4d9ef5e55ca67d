import type { StreamReference } from '@callplane/media';
import type { Want } from './select-tracks.js';

export function streamName({ feedId, mid }: StreamReference): string {
  return `${feedId}/${mid}`;
}

/** What a receiving connection has learned about streams of the media server. */
export class StreamNotes {
  /** Streams that the media server did not have, by name, with the number of attempts. */
  readonly #absent = new Map<string, { tries: number; isDue: boolean }>();
  /** Streams that no section could carry without an offer, because their codec differs. */
  readonly #needOffer = new Set<string>();
  /** The streams whose sections the client refused, by name, with the keys of their tracks. */
  readonly #refused = new Map<string, string>();

  /** Notes requested streams that the media server does not have. They are requested again after `retryAbsent`. */
  absent(streams: readonly StreamReference[]): void {
    for (const stream of streams) {
      this.#absent.set(streamName(stream), { tries: this.triesOf(stream) + 1, isDue: false });
    }
  }

  /** The media server has the stream. */
  present(stream: StreamReference): void {
    this.#absent.delete(streamName(stream));
  }

  /** Whether the stream may be requested now. */
  isDue(stream: StreamReference): boolean {
    return this.#absent.get(streamName(stream))?.isDue !== false;
  }

  /** How often the media server did not have the stream, since it had it last. */
  triesOf(stream: StreamReference): number {
    return this.#absent.get(streamName(stream))?.tries ?? 0;
  }

  /** Whether the media server does not have one of these tracks. Forgets the others that it did not have. */
  hasAbsent(wants: ReadonlyMap<string, Want>): boolean {
    const wanted = new Set([...wants.values()].map(({ stream }) => streamName(stream)));
    for (const name of this.#absent.keys()) if (!wanted.has(name)) this.#absent.delete(name);
    return this.#absent.size > 0;
  }

  retryAbsent(): void {
    for (const entry of this.#absent.values()) entry.isDue = true;
  }

  /** Notes streams that a section of their kind could not carry. They get an offer. */
  mismatch(streams: readonly StreamReference[]): void {
    for (const stream of streams) this.#needOffer.add(streamName(stream));
  }

  needsOffer(stream: StreamReference): boolean {
    return this.#needOffer.has(streamName(stream));
  }

  /** The client has refused the section of this stream. */
  refuse(stream: StreamReference, key: string): void {
    this.#refused.set(streamName(stream), key);
  }

  isRefused(stream: StreamReference): boolean {
    return this.#refused.has(streamName(stream));
  }

  /** The refused streams, with the keys of their tracks. */
  get refused(): { stream: StreamReference; key: string }[] {
    return [...this.#refused].map(([name, key]) => {
      const at = name.lastIndexOf('/');
      return { stream: { feedId: name.slice(0, at), mid: name.slice(at + 1) }, key };
    });
  }
}
