import type {
  ListedSection,
  SectionSettings,
  StreamReference,
  StreamSettings,
  StreamSwitch,
  SubscriberChange,
} from '@callplane/media';
import { PROTOCOL_LIMITS, type Layer, type ServerMessages, type TrackKind } from '@callplane/protocol';
import { streamName, trackOf } from '../rooms/tracks.js';
import type { SelectedTrack } from './selection.js';

/** A media section of a receiving connection. */
export interface Section {
  readonly mid: string;
  readonly kind: TrackKind;
  /** The stream that the media server sends on it; null while it is idle. */
  stream: StreamReference | null;
  /** The track that the client receives on it; null if the section is paused until another track needs it. */
  key: string | null;
  layer: Layer | undefined;
  paused: boolean;
  /**
   * The publisher has ended the stream. It may begin another under the same reference, which the section does not carry.
   */
  isEnded: boolean;
}

/** How the sections come to carry the selected tracks. */
interface SectionPlan {
  /** Sections that get another stream without an offer. */
  switches: StreamSwitch[];
  /** The streams that an offer adds, because no section can switch to them, and the sections that it removes. */
  change: SubscriberChange;
  /** More sections than a connection may have: it has to be replaced. */
  isExhausted: boolean;
}

/** All layers. The media server keeps each of the two until it is told otherwise. */
const HIGHEST = { spatial: 2, temporal: 2 } as const;

/**
 * The media sections of one receiving connection, whose number PROTOCOL_LIMITS bounds, and the connection's knowledge
 * about streams. A section that is no longer needed is paused, and carries the next track of its kind.
 */
export class Sections {
  readonly #sections = new Map<string, Section>();
  /** Streams that the media server did not have, by name, with the number of attempts. */
  readonly #absent = new Map<string, { tries: number; isDue: boolean }>();
  /** Streams that no section could carry without an offer, because their codec differs. */
  readonly #needOffer = new Set<string>();
  /** The streams whose sections the client's answers refused, by name, with the keys of their tracks. */
  readonly refused = new Map<string, string>();

  get all(): readonly Section[] {
    return [...this.#sections.values()];
  }

  /** Keys of the received tracks. */
  get held(): ReadonlySet<string> {
    return new Set(this.all.flatMap(({ key }) => key ?? []));
  }

  /** The received tracks as the client gets them. */
  get tracks(): ServerMessages['subscribed']['tracks'] {
    return this.all.flatMap(({ key, mid }) => (key === null ? [] : [{ ...trackOf(key), mid }]));
  }

  /** Consecutive times the stream was absent. */
  triesOf(stream: StreamReference): number {
    return this.#absent.get(streamName(stream))?.tries ?? 0;
  }

  /** Whether the media server does not have one of these tracks. Clears the absence of all other tracks. */
  hasAbsent(selected: ReadonlyMap<string, SelectedTrack>): boolean {
    const names = new Set([...selected.values()].map(({ stream }) => streamName(stream)));
    for (const name of this.#absent.keys()) if (!names.has(name)) this.#absent.delete(name);
    return this.#absent.size > 0;
  }

  /** Streams that the media server did not have are requested again. */
  retryAbsent(): void {
    for (const entry of this.#absent.values()) entry.isDue = true;
  }

  /** Notes which streams the room no longer has. */
  noteEnded(isPublished: (stream: StreamReference) => boolean): void {
    for (const section of this.#sections.values()) {
      if (section.stream === null || isPublished(section.stream)) continue;
      section.isEnded = true;
      section.key = null;
    }
  }

  /**
   * Takes over the media server's list of sections.
   * @param keys of tracks, by the names of their streams: a section with another stream gets none
   * @param isOffer whether the media server made an offer, which begins ended streams again
   * @returns false if the client has an offer to answer
   */
  take(listed: readonly ListedSection[], keys: ReadonlyMap<string, string>, isOffer = false): boolean {
    for (const { subscriberMid: mid, kind, stream, settings } of listed) {
      const name = stream === null ? '' : streamName(stream);
      const known = this.#sections.get(mid);
      const isSameStream = known?.stream != null && streamName(known.stream) === name;
      const isEnded = !isOffer && isSameStream && known.isEnded;
      const key = isEnded ? null : (keys.get(name) ?? null);
      const paused = settings.paused ?? false;
      this.#sections.set(mid, { mid, kind, stream, key, layer: layerOf(settings), paused, isEnded });
      this.#absent.delete(name);
    }
    return listed.every(({ stream, isNegotiated }) => stream === null || isNegotiated);
  }

  /** The requests after which the sections carry `wants`. Changes nothing. */
  plan(selected: ReadonlyMap<string, SelectedTrack>): SectionPlan {
    const { carried, free } = this.#match(selected);
    const missing = [...selected.values()].filter(({ key, stream }) => !carried.has(key) && this.#isDue(stream));
    const switches: StreamSwitch[] = [];
    const add: SubscriberChange['add'] = [];
    const switchable = free.filter(({ stream }) => stream !== null && !this.refused.has(streamName(stream)));
    for (const track of missing) {
      const at = this.#needOffer.has(streamName(track.stream))
        ? -1
        : switchable.findIndex(({ kind }) => kind === track.kind);
      const [section] = at === -1 ? [] : switchable.splice(at, 1);
      if (section === undefined) add.push({ ...track.stream, ...settingsOf(track) });
      else switches.push({ ...track.stream, subscriberMid: section.mid, ...track.layer });
    }
    const used = new Set(switches.map(({ subscriberMid }) => subscriberMid));
    const ended = this.all.filter(({ isEnded }) => isEnded);
    const removable = [...free, ...ended].map(({ mid }) => mid).filter((mid) => !used.has(mid));
    const mismatched = add.filter((stream) => this.#needOffer.has(streamName(stream))).length;
    return {
      switches,
      change: { add, remove: add.length > 0 ? removable : [] },
      isExhausted: this.#sections.size + mismatched > PROTOCOL_LIMITS.sectionsMax,
    };
  }

  /**
   * Call this after a switch: notes streams that the media server lacks, or that no section of their kind can carry.
   * @returns whether there are some of the latter
   */
  switched(asked: readonly StreamReference[], absent: readonly StreamReference[]): boolean {
    this.#noteAbsent(absent);
    const mismatched = asked.filter((one) => !this.#isCarried(one) && !absent.some((other) => isSame(other, one)));
    for (const stream of mismatched) this.#needOffer.add(streamName(stream));
    return mismatched.length > 0;
  }

  /** Call this after an offer that was to add the streams: a stream that it did not add is absent. */
  added(streams: readonly StreamReference[]): void {
    this.#noteAbsent(streams.filter((one) => !this.#isCarried(one)));
  }

  /**
   * The client's answer does not receive on these sections.
   * @returns keys of the tracks on them
   */
  refuse(mids: readonly string[]): string[] {
    return mids.flatMap((mid) => {
      const section = this.#sections.get(mid);
      if (section?.stream == null || section.key === null) return [];
      const { key } = section;
      this.refused.set(streamName(section.stream), key);
      section.key = null;
      return [key];
    });
  }

  /** The settings that the media server has to change, so that the sections send the selected tracks. */
  settings(selected: ReadonlyMap<string, SelectedTrack>): SectionSettings[] {
    const { carried } = this.#match(selected);
    const trackOfMid = new Map([...carried].map(([key, { mid }]) => [mid, selected.get(key)]));
    return this.all.flatMap((section) => {
      if (section.stream === null) return [];
      const track = trackOfMid.get(section.mid);
      const paused = track?.paused ?? true;
      const layer = track === undefined ? section.layer : track.layer;
      const isLayer = sameLayer(section.layer, layer);
      if (isLayer && section.paused === paused) return [];
      return [
        {
          subscriberMid: section.mid,
          ...(isLayer ? {} : { ...HIGHEST, ...layer }),
          ...(section.paused === paused ? {} : { paused }),
        },
      ];
    });
  }

  /** Call this when the media server has taken over the settings. */
  configured(settings: readonly SectionSettings[], selected: ReadonlyMap<string, SelectedTrack>): void {
    for (const { subscriberMid, paused } of settings) {
      const section = this.#sections.get(subscriberMid);
      if (section === undefined) continue;
      section.layer = selected.get(section.key ?? '')?.layer;
      if (paused !== undefined) section.paused = paused;
    }
  }

  /** Gives each section that carries a selected track the key of that track, and all others none. */
  assign(selected: ReadonlyMap<string, SelectedTrack>): void {
    const { carried } = this.#match(selected);
    for (const section of this.#sections.values()) section.key = null;
    for (const [key, section] of carried) section.key = key;
  }

  #isCarried(stream: StreamReference): boolean {
    return this.all.some((section) => section.stream !== null && isSame(section.stream, stream));
  }

  #noteAbsent(streams: readonly StreamReference[]): void {
    for (const stream of streams) {
      this.#absent.set(streamName(stream), { tries: this.triesOf(stream) + 1, isDue: false });
    }
  }

  #isDue(stream: StreamReference): boolean {
    return this.#absent.get(streamName(stream))?.isDue !== false;
  }

  /** The sections that carry selected tracks, by key, and the others that have a stream. */
  #match(selected: ReadonlyMap<string, SelectedTrack>): { carried: Map<string, Section>; free: Section[] } {
    const byStream = new Map([...selected.values()].map((track) => [streamName(track.stream), track.key]));
    const carried = new Map<string, Section>();
    const free: Section[] = [];
    for (const section of this.#sections.values()) {
      if (section.stream === null || section.isEnded) continue;
      const key = byStream.get(streamName(section.stream));
      if (key === undefined) free.push(section);
      else carried.set(key, section);
    }
    return { carried, free };
  }
}

function settingsOf({ layer, paused }: SelectedTrack): StreamSettings {
  return { ...layer, ...(paused ? { paused } : {}) };
}

function layerOf({ spatial, temporal }: StreamSettings): Layer | undefined {
  if (spatial === undefined && temporal === undefined) return undefined;
  return { ...(spatial === undefined ? {} : { spatial }), ...(temporal === undefined ? {} : { temporal }) };
}

function isSame(a: StreamReference, b: StreamReference): boolean {
  return streamName(a) === streamName(b);
}

function sameLayer(a: Layer | undefined, b: Layer | undefined): boolean {
  return a?.spatial === b?.spatial && a?.temporal === b?.temporal;
}
