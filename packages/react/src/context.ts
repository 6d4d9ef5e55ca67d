'use client';
import { type Call, type CallplaneError, type CallSnapshot, INITIAL_SNAPSHOT } from '@callplane/client-js';
import { createContext, useContext, useRef, useSyncExternalStore } from 'react';

export interface Joining {
  /** Undefined until the participant is in the room, or in its lobby. */
  call: Call | undefined;
  /** Why the room could not be joined. */
  error: CallplaneError | undefined;
}

export const JoiningContext = createContext<Joining>({ call: undefined, error: undefined });

/** The call of the nearest `<Call>` or `<CallProvider>`; undefined until it is joined. */
export function useCall(): Call | undefined {
  return useContext(JoiningContext).call;
}

const never = () => () => undefined;
const initial = () => INITIAL_SNAPSHOT;

/**
 * Selects a part of the call's snapshot. The component renders again only when the selected value is another one; the
 * elements of an array are compared one by one.
 */
export function useCallState<T>(
  select: (snapshot: CallSnapshot) => T,
  isEqual: (before: T, after: T) => boolean = isSame,
): T {
  const call = useCall();
  const kept = useRef<{ value: T }>(undefined);
  const get = call?.getSnapshot ?? initial;
  const read = () => {
    const value = select(get());
    if (kept.current === undefined || !isEqual(kept.current.value, value)) kept.current = { value };
    return kept.current.value;
  };
  return useSyncExternalStore(call?.subscribe ?? never, read, read);
}

function isSame(before: unknown, after: unknown): boolean {
  if (Object.is(before, after)) return true;
  if (!Array.isArray(before) || !Array.isArray(after) || before.length !== after.length) return false;
  return before.every((value, at) => Object.is(value, after[at]));
}
