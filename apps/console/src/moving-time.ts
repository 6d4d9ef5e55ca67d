import { useEffect, useState } from 'react';

/** The clock of the browser. Everything that compares a time of the API with now reads it here. */
export function nowMs(): number {
  return Date.now();
}

const CHECK_EVERY_MS = 15_000;

/** @returns the end of the last whole step before a time */
export function stepBefore(timeMs: number, stepMs: number): number {
  return Math.floor(timeMs / stepMs) * stepMs;
}

/**
 * The present, in steps, for pages that stay open for hours.
 * @param isHeld called before each step: true keeps the time for now
 */
export function useMovingTime(stepMs: number, isHeld: () => boolean = () => false): number {
  const [timeMs, setTimeMs] = useState(() => stepBefore(nowMs(), stepMs));
  useEffect(() => {
    const move = () => {
      if (!isHeld()) setTimeMs(stepBefore(nowMs(), stepMs));
    };
    move();
    const timer = setInterval(move, CHECK_EVERY_MS);
    return () => clearInterval(timer);
  }, [stepMs]);
  return timeMs;
}
