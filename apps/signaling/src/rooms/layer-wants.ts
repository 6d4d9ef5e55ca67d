/** The highest simulcast layer. Wanted of every track of which nothing is known. */
export const LAYER_HIGHEST = 2;
/** Gateways repeat what their members want this often, in milliseconds. */
export const LAYERS_REPEATED_MS = 5000;
/** Age at which the report of a gateway counts no more, in milliseconds. Its members then want everything. */
const STALE_AFTER_MS = 16_000;
/** Tracks of one report. A gateway whose members want more tracks reports that they want everything. */
const REPORTED_MAX = 2000;

/** The highest layer that is wanted of each track, by track key; null: the highest there is, of every track. */
export type ReportedLayers = readonly (readonly [trackKey: string, layer: number])[] | null;

/** What the receivers of a room want of each video track: those of this gateway, and those of the others. */
export class LayerWants {
  readonly #ofSession = new Map<string, ReadonlyMap<string, number>>();
  /** How many sessions of this gateway want each layer of a track. */
  readonly #own = new Map<string, number[]>();
  readonly #ofGateway = new Map<string, { layers: ReadonlyMap<string, number> | null; atMs: number }>();

  /** The session receives these layers from now on, by track key. */
  note(sessionId: string, layers: ReadonlyMap<string, number>): void {
    this.forget(sessionId);
    if (layers.size === 0) return;
    this.#ofSession.set(sessionId, layers);
    for (const [key, layer] of layers) this.#count(key, layer, 1);
  }

  /** The session is over here. */
  forget(sessionId: string): void {
    for (const [key, layer] of this.#ofSession.get(sessionId) ?? []) this.#count(key, layer, -1);
    this.#ofSession.delete(sessionId);
  }

  /** The report of another gateway, which replaces its last one. */
  receive(gateway: string, reported: ReportedLayers, nowMs: number): void {
    const isTooLong = reported !== null && reported.length > REPORTED_MAX;
    const layers = reported === null || isTooLong ? null : new Map(reported);
    this.#ofGateway.set(gateway, { layers, atMs: nowMs });
  }

  /**
   * The highest layer that any member wants of the track; null if none wants it.
   * @param gateways those that hold members of the room, beside this one
   */
  wanted(trackKey: string, gateways: Iterable<string>, nowMs: number): number | null {
    let highest = (this.#own.get(trackKey) ?? []).findLastIndex((count) => count > 0);
    for (const gateway of gateways) {
      const report = this.#ofGateway.get(gateway);
      // A gateway whose reports are lost, or that makes none, must not lose its pictures.
      if (report === undefined || report.layers === null || nowMs - report.atMs > STALE_AFTER_MS) return LAYER_HIGHEST;
      highest = Math.max(highest, report.layers.get(trackKey) ?? -1);
    }
    return highest === -1 ? null : highest;
  }

  /** What this gateway reports: the wants of its members for the tracks that `isReported` accepts. */
  report(isReported: (trackKey: string) => boolean): ReportedLayers {
    const layers: [string, number][] = [];
    for (const [key, counts] of this.#own) {
      if (isReported(key)) layers.push([key, counts.findLastIndex((count) => count > 0)]);
    }
    return layers.length > REPORTED_MAX ? null : layers;
  }

  /** Forgets the reports of gateways that hold no member any more. */
  keep(gateways: ReadonlySet<string>): void {
    for (const gateway of this.#ofGateway.keys()) if (!gateways.has(gateway)) this.#ofGateway.delete(gateway);
  }

  #count(key: string, layer: number, by: number): void {
    const counts = this.#own.get(key) ?? [0, 0, 0];
    counts[layer] = (counts[layer] ?? 0) + by;
    if (counts.every((count) => count === 0)) this.#own.delete(key);
    else this.#own.set(key, counts);
  }
}

/** Reads the report of another gateway. @returns undefined if another version of this software has sent something else. */
export function parseLayers(value: unknown): ReportedLayers | undefined {
  if (value === null) return null;
  if (!Array.isArray(value)) return undefined;
  const entries = value.filter(
    (entry): entry is [string, number] =>
      Array.isArray(entry) && typeof entry[0] === 'string' && [0, 1, 2].includes(entry[1] as number),
  );
  return entries.length === value.length ? entries : undefined;
}
