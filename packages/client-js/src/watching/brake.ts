/** How much less video comes than its level has: none of it is missing, a half or three quarters of its pictures, all of it. */
export type BrakeName = 'none' | 'half' | 'slow' | 'stop';

/** Slows video for a moment, so that the queue drains. */
export interface Brake {
  readonly name: BrakeName;
  /** When the present rate begins, unless the brake is eased first. */
  readonly untilMs: number;
  /** Until then a video that was stopped is eased. */
  readonly easedUntilMs: number;
}

export function released(nowMs: number): Brake {
  return { name: 'none', untilMs: nowMs, easedUntilMs: nowMs };
}

export function braked(name: BrakeName, untilMs: number, easedUntilMs = untilMs): Brake {
  return { name, untilMs, easedUntilMs };
}

/**
 * The brake at this moment. A video that was stopped comes with half its frame rate at first: the media server sends the old
 * layer until a key frame of the lower one arrives, and a paused video gets none.
 */
export function brakeAt({ brake: { name, untilMs, easedUntilMs } }: { brake: Brake }, nowMs: number): BrakeName {
  if (nowMs < untilMs) return name;
  return name === 'stop' && nowMs < easedUntilMs ? 'half' : 'none';
}
