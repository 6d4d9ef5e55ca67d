import type { CarriedSection, CarriedStream, StreamReference, StreamSettings } from '@callplane/media';
import { PROTOCOL_LIMITS, type Layer, type ServerMessages, type TrackKind } from '@callplane/protocol';
import { trackOf } from '../../rooms/tracks.js';
import type { Want } from './select-tracks.js';
import { streamName, type StreamNotes } from './stream-notes.js';

/** A media section of a receiving connection. */
export interface Section {
  readonly mid: string;
  readonly kind: TrackKind;
  /** What the media server sends on it; null while it is idle. */
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

/** How the sections come to carry what is wanted. */
export interface SectionPlan {
  /** Sections that get another stream without an offer. */
  switches: CarriedStream[];
  /** Streams that an offer adds, because no section can switch to them. */
  add: (StreamReference & StreamSettings)[];
  /** Streams that the same offer removes. */
  remove: StreamReference[];
  /** More sections than a connection may have: it has to be replaced. */
  isExhausted: boolean;
}

/** All layers. The media server keeps each of the two until it is told otherwise. */
const HIGHEST = { spatial: 2, temporal: 2 } as const;

/**
 * The media sections of one receiving connection, of which there are never more than PROTOCOL_LIMITS say. A section that
 * is no longer needed is paused, and carries the next track of its kind.
 */
export class Sections {
  readonly #sections = new Map<string, Section>();
  /** All sections of the connection, those included whose kind is not known here. */
  #count = 0;
  readonly #notes: StreamNotes;

  constructor(notes: StreamNotes) {
    this.#notes = notes;
  }

  get all(): readonly Section[] {
    return [...this.#sections.values()];
  }

  get count(): number {
    return this.#count;
  }

  /** Keys of the received tracks. */
  get held(): ReadonlySet<string> {
    return new Set(this.all.flatMap(({ key }) => key ?? []));
  }

  /** The received tracks as the client gets them. */
  get tracks(): ServerMessages['subscribed']['tracks'] {
    return this.all.flatMap(({ key, mid }) => (key === null ? [] : [{ ...trackOf(key), mid }]));
  }

  /** Notes which streams the room no longer has. */
  noteEnded(isPublished: (stream: StreamReference) => boolean): void {
    for (const section of this.#sections.values()) {
      if (section.stream === null || isPublished(section.stream)) continue;
      section.isEnded = true;
      section.key = null;
    }
  }

  /** What the media server should do, so that the sections carry `wants`. Changes nothing. */
  plan(wants: ReadonlyMap<string, Want>): SectionPlan {
    const { carried, free } = this.#match(wants);
    const missing = [...wants.values()].filter(({ key, stream }) => !carried.has(key) && this.#notes.isDue(stream));
    const switches: CarriedStream[] = [];
    const add: (StreamReference & StreamSettings)[] = [];
    const switchable = free.filter(({ stream }) => stream !== null && !this.#notes.isRefused(stream));
    for (const want of missing) {
      const at = this.#notes.needsOffer(want.stream) ? -1 : switchable.findIndex(({ kind }) => kind === want.kind);
      const [section] = at === -1 ? [] : switchable.splice(at, 1);
      if (section === undefined) add.push({ ...want.stream, ...settingsOf(want) });
      else switches.push({ ...want.stream, subscriberMid: section.mid });
    }
    const used = new Set(switches.map(({ subscriberMid }) => subscriberMid));
    const ended = this.all.filter(({ isEnded }) => isEnded);
    const removable = [...free, ...ended].filter(({ mid }) => !used.has(mid));
    const remove = add.length > 0 ? removable.flatMap(({ stream }) => stream ?? []) : [];
    const mismatched = add.filter((stream) => this.#notes.needsOffer(stream)).length;
    return { switches, add, remove, isExhausted: this.#count + mismatched > PROTOCOL_LIMITS.sectionsMax };
  }

  /** Takes over what the sections carry now, after an offer or a switch. */
  carry(streams: readonly CarriedStream[], wants: ReadonlyMap<string, Want>, offered?: { sectionCount: number }): void {
    this.#count = offered?.sectionCount ?? this.#count;
    const byStream = new Map([...wants.values()].map((want) => [streamName(want.stream), want]));
    const carried = new Map(streams.map((stream) => [stream.subscriberMid, stream]));
    for (const section of this.#sections.values()) if (!carried.has(section.mid)) release(section);
    for (const { feedId, mid, subscriberMid } of carried.values()) {
      const stream = { feedId, mid };
      const want = byStream.get(streamName(stream));
      const known = this.#sections.get(subscriberMid);
      if (known === undefined && want === undefined) continue;
      const section = known ?? { mid: subscriberMid, kind: want?.kind ?? 'audio', ...IDLE };
      this.#sections.set(subscriberMid, section);
      if (offered !== undefined) section.isEnded = false;
      if (!isSame(section.stream, stream)) Object.assign(section, IDLE, { stream });
      section.key = section.isEnded ? null : (want?.key ?? null);
      this.#notes.present(stream);
    }
  }

  /** Call this after an offer: the streams that it added are sent as they were requested. */
  added(streams: readonly (StreamReference & StreamSettings)[]): void {
    const byName = new Map(streams.map((stream) => [streamName(stream), stream]));
    for (const section of this.#sections.values()) {
      const settings = section.stream === null ? undefined : byName.get(streamName(section.stream));
      if (settings === undefined) continue;
      section.paused = settings.paused ?? false;
      section.layer = layerOf(settings);
    }
  }

  /** The client's answer does not receive on these sections. */
  refuse(mids: readonly string[]): void {
    for (const mid of mids) {
      const section = this.#sections.get(mid);
      if (section?.stream == null || section.key === null) continue;
      this.#notes.refuse(section.stream, section.key);
      section.key = null;
    }
  }

  /** The settings that the media server has to change, so that the sections send what is wanted. */
  settings(wants: ReadonlyMap<string, Want>): (StreamSettings & { subscriberMid: string })[] {
    const { carried } = this.#match(wants);
    const wantOf = new Map([...carried].map(([key, { mid }]) => [mid, wants.get(key)]));
    return this.all.flatMap((section) => {
      if (section.stream === null) return [];
      const want = wantOf.get(section.mid);
      const paused = want?.paused ?? true;
      const layer = want === undefined ? section.layer : want.layer;
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
  configured(
    settings: readonly (StreamSettings & { subscriberMid: string })[],
    wants: ReadonlyMap<string, Want>,
  ): void {
    for (const { subscriberMid, paused } of settings) {
      const section = this.#sections.get(subscriberMid);
      if (section === undefined) continue;
      section.layer = wants.get(section.key ?? '')?.layer;
      if (paused !== undefined) section.paused = paused;
    }
  }

  /** Takes over the sections of a connection that another gateway made. */
  restore(sections: readonly Section[], count: number): void {
    this.#count = count;
    for (const section of sections) this.#sections.set(section.mid, { ...section });
  }

  /**
   * Takes over what the media server says that the sections carry. The record of another gateway may be older than its
   * last requests.
   * @returns false if the client has an offer to answer that only the other gateway knows
   */
  correct(actual: readonly CarriedSection[]): boolean {
    const carried = new Map(actual.map((section) => [section.subscriberMid, section]));
    for (const section of this.#sections.values()) if (!carried.has(section.mid)) release(section);
    for (const { feedId, mid, subscriberMid, isNegotiated, settings } of carried.values()) {
      const section = this.#sections.get(subscriberMid);
      const stream = { feedId, mid };
      // A section that carries nothing, or an ended stream, gets another one with an offer only.
      if (section?.stream == null || !isNegotiated) return false;
      if (section.isEnded && !isSame(section.stream, stream)) return false;
      if (!isSame(section.stream, stream)) Object.assign(section, IDLE, { stream });
      section.paused = settings.paused ?? false;
      section.layer = layerOf(settings);
    }
    return true;
  }

  /** Names the tracks of the sections: those of the wanted ones, and none of the others. */
  assign(wants: ReadonlyMap<string, Want>): void {
    const { carried } = this.#match(wants);
    for (const section of this.#sections.values()) section.key = null;
    for (const [key, section] of carried) section.key = key;
  }

  /** The sections that carry wanted tracks, by key, and the others that have a stream. */
  #match(wants: ReadonlyMap<string, Want>): { carried: Map<string, Section>; free: Section[] } {
    const byStream = new Map([...wants.values()].map((want) => [streamName(want.stream), want.key]));
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

const IDLE = { stream: null, key: null, layer: undefined, paused: false, isEnded: false };

function release(section: Section): void {
  Object.assign(section, IDLE);
}

function settingsOf({ layer, paused }: Want): StreamSettings {
  return { ...layer, ...(paused ? { paused } : {}) };
}

function layerOf({ spatial, temporal }: StreamSettings): Layer | undefined {
  if (spatial === undefined && temporal === undefined) return undefined;
  return { ...(spatial === undefined ? {} : { spatial }), ...(temporal === undefined ? {} : { temporal }) };
}

function isSame(a: StreamReference | null, b: StreamReference): boolean {
  return a !== null && a.feedId === b.feedId && a.mid === b.mid;
}

function sameLayer(a: Layer | undefined, b: Layer | undefined): boolean {
  return a?.spatial === b?.spatial && a?.temporal === b?.temporal;
}
