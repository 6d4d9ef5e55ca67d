/** In milliseconds since the recording's begin. */
export interface Interval {
  fromMs: number;
  toMs: number;
}

export interface Talk extends Interval {
  participantId: string;
}

/** A speaker stays for this time at least, and shorter remarks of others change nothing, in milliseconds. */
const HOLD_MS = 3000;
const TALK_MIN_MS = 1000;

/** Who is the speaker from when on. A speaker stays until somebody else speaks while the speaker is silent. */
export function speakersOf(talks: readonly Talk[]): { participantId: string; fromMs: number }[] {
  const speakers: { participantId: string; fromMs: number; untilMs: number }[] = [];
  for (const { participantId, fromMs, toMs } of [...talks].sort((a, b) => a.fromMs - b.fromMs)) {
    const current = speakers.at(-1);
    if (current?.participantId === participantId) {
      current.untilMs = Math.max(current.untilMs, toMs);
      continue;
    }
    const free = current === undefined ? 0 : Math.max(current.untilMs, current.fromMs + HOLD_MS);
    const atMs = Math.max(fromMs, free);
    if (toMs - atMs >= TALK_MIN_MS) speakers.push({ participantId, fromMs: atMs, untilMs: toMs });
  }
  return speakers;
}

/** The parts of an interval that are in none of the others, which are in order. */
export function without({ fromMs, toMs }: Interval, others: readonly Interval[]): Interval[] {
  const parts: Interval[] = [];
  let atMs = fromMs;
  for (const other of others) {
    parts.push({ fromMs: atMs, toMs: Math.min(other.fromMs, toMs) });
    atMs = Math.max(atMs, other.toMs);
  }
  return [...parts, { fromMs: atMs, toMs }].filter((part) => part.toMs > part.fromMs);
}
