import type { StreamReference, SubscriberOffer } from '@callplane/media';
import type { Layer, ServerMessages } from '@callplane/protocol';
import { trackOf } from './wanted-tracks.js';

/** What the media server sends on one peer connection, and what it does not know; by the keys of the wanted tracks. */
export class ReceivedStreams {
  readonly #streams = new Map<string, StreamReference>();
  readonly #subscriberMids = new Map<string, string>();
  /** The layer that was selected. */
  readonly #layers = new Map<string, Layer>();
  readonly #absent = new Map<string, StreamReference>();

  /** What the media server has to be asked for, so that it sends what is wanted. */
  changesTo(wanted: ReadonlyMap<string, StreamReference>): { add: StreamReference[]; remove: StreamReference[] } {
    const add: StreamReference[] = [];
    const remove: StreamReference[] = [];
    for (const [key, stream] of this.#streams) if (!isSame(wanted.get(key), stream)) remove.push(stream);
    for (const [key, stream] of wanted) {
      if (isSame(this.#streams.get(key), stream) || isSame(this.#absent.get(key), stream)) continue;
      add.push(stream);
    }
    return { add, remove };
  }

  remove(removed: readonly StreamReference[]): void {
    for (const stream of removed) {
      for (const [key, had] of this.#streams) {
        if (!isSame(had, stream)) continue;
        this.#streams.delete(key);
        this.#subscriberMids.delete(key);
        this.#layers.delete(key);
      }
    }
  }

  /**
   * Takes over what the media server offers from now on.
   * @returns the offer's tracks as the client knows them.
   */
  replace(
    offered: SubscriberOffer['streams'],
    wanted: ReadonlyMap<string, StreamReference>,
  ): ServerMessages['offer']['tracks'] {
    const keys = new Map([...this.#streams, ...wanted].map(([key, stream]) => [nameOf(stream), key]));
    const tracks: ServerMessages['offer']['tracks'] = [];
    this.#streams.clear();
    this.#subscriberMids.clear();
    for (const { feedId, mid, subscriberMid } of offered) {
      const key = keys.get(nameOf({ feedId, mid }));
      if (key === undefined) continue;
      this.#streams.set(key, { feedId, mid });
      this.#subscriberMids.set(key, subscriberMid);
      tracks.push({ ...trackOf(key), mid: subscriberMid });
    }
    return tracks;
  }

  /**
   * Notes which of those that were asked for the media server did not take: they do not exist there (yet).
   * @returns whether there are any.
   */
  noteAbsent(asked: readonly StreamReference[], wanted: ReadonlyMap<string, StreamReference>): boolean {
    let absent = false;
    for (const [key, stream] of wanted) {
      if (!asked.includes(stream) || isSame(this.#streams.get(key), stream)) continue;
      this.#absent.set(key, stream);
      absent = true;
    }
    return absent;
  }

  forgetAbsent(): void {
    this.#absent.clear();
  }

  /** Those whose layer is not the one that was chosen, looked up one by one: choices change while one is selected. */
  *layersToSelect(
    layerOf: (key: string) => Layer | undefined,
  ): Iterable<{ key: string; subscriberMid: string; layer: Layer }> {
    for (const [key, subscriberMid] of this.#subscriberMids) {
      const layer = layerOf(key);
      if (layer !== undefined && !sameLayer(this.#layers.get(key), layer)) yield { key, subscriberMid, layer };
    }
  }

  layerSelected(key: string, layer: Layer): void {
    this.#layers.set(key, layer);
  }
}

function nameOf({ feedId, mid }: StreamReference): string {
  return `${feedId}/${mid}`;
}

function isSame(a: StreamReference | undefined, b: StreamReference | undefined): boolean {
  return a !== undefined && b !== undefined && a.feedId === b.feedId && a.mid === b.mid;
}

function sameLayer(a: Layer | undefined, b: Layer): boolean {
  return a !== undefined && a.spatial === b.spatial && a.temporal === b.temporal;
}
