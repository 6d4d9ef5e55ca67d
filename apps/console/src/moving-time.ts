import { useEffect, useState } from 'react';

/** The clock of the browser. Everything that compares a time of the API with now reads it here. */
export function nowMs(): number {
  return Date.now();
}

const CHECK_EVERY_MS = 15_000;

/** @returns the beginning of the present step, for pages that stay open for hours */
export function useMovingTime(stepMs: number): number {
  const stepBegin = () => Math.floor(nowMs() / stepMs) * stepMs;
  const [timeMs, setTimeMs] = useState(stepBegin);
  useEffect(() => {
    const timer = setInterval(() => setTimeMs(stepBegin()), CHECK_EVERY_MS);
    return () => clearInterval(timer);
  }, [stepMs]);
  return timeMs;
}
