import { QUALITY_LEVELS, type QualityLevel } from '@callplane/core';

export interface QualityEntry {
  participantId: string;
  level: QualityLevel;
}

/** What instances send each other. */
export interface QualityNotice {
  quality: QualityEntry[];
}

/** Number of entries that one notice of another instance may have. */
const ENTRIES_MAX = 10_000;

/** The levels of quality that the participants of a room report. A crash or a lost notice only delays one. */
export class QualityLevels {
  readonly #levels = new Map<string, QualityLevel>();
  /** Participants whose level the members of this instance do not know yet. */
  readonly #changed = new Set<string>();
  /** Participants whose level other instances do not know yet. */
  readonly #reported = new Set<string>();

  /** A client of this instance reports its level. */
  report(participantId: string, level: QualityLevel): void {
    if (this.#set(participantId, level)) this.#reported.add(participantId);
  }

  /** Another instance has sent levels. */
  learn(entries: readonly QualityEntry[]): void {
    for (const { participantId, level } of entries) this.#set(participantId, level);
  }

  /** The participant has left. */
  delete(participantId: string): void {
    this.#levels.delete(participantId);
    this.#changed.delete(participantId);
    this.#reported.delete(participantId);
  }

  /** The levels that have changed since the last call. */
  takeChanged(): QualityEntry[] {
    return this.#take(this.#changed);
  }

  /** A notice with the levels that were reported here since the last call; null without any. */
  takeReported(): QualityNotice | null {
    const quality = this.#take(this.#reported);
    return quality.length === 0 ? null : { quality };
  }

  /** The levels below `good`. */
  impaired(): QualityEntry[] {
    return [...this.#levels].flatMap(([participantId, level]) => (level === 'good' ? [] : [{ participantId, level }]));
  }

  #set(participantId: string, level: QualityLevel): boolean {
    if (this.#levels.get(participantId) === level) return false;
    this.#levels.set(participantId, level);
    this.#changed.add(participantId);
    return true;
  }

  #take(ids: Set<string>): QualityEntry[] {
    const entries = [...ids].flatMap((participantId) => {
      const level = this.#levels.get(participantId);
      return level === undefined ? [] : [{ participantId, level }];
    });
    ids.clear();
    return entries;
  }
}

/** @returns null if the message of another instance is no notice of quality. */
export function parseQuality(message: unknown): QualityEntry[] | null {
  if (typeof message !== 'object' || message === null) return null;
  const { quality } = message as Partial<QualityNotice>;
  if (!Array.isArray(quality)) return null;
  return quality.slice(0, ENTRIES_MAX).filter(isEntry);
}

function isEntry(entry: unknown): entry is QualityEntry {
  if (typeof entry !== 'object' || entry === null) return false;
  const { participantId, level } = entry as Partial<QualityEntry>;
  return typeof participantId === 'string' && QUALITY_LEVELS.includes(level as QualityLevel);
}
