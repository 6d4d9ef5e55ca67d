/** What an event does in a state: the next state and the actions that the owner of the machine runs, in order. */
export interface Transition<State extends string, Action extends string> {
  readonly to: State;
  readonly actions: readonly Action[];
}

/** The event has no effect in this state. */
export const IGNORE = 'ignore';
/** The event cannot happen in this state. If it does, the owner reports a defect and nothing changes. */
export const NEVER = 'never';

export type Cell<State extends string, Action extends string> =
  | Transition<State, Action>
  | typeof IGNORE
  | typeof NEVER;

/** A state machine without I/O. Each pair of a state and an event has an entry. */
export type StateTable<State extends string, Event extends string, Action extends string> = Readonly<
  Record<State, Readonly<Record<Event, Cell<State, Action>>>>
>;

export function to<State extends string, Action extends string>(
  state: State,
  ...actions: Action[]
): Transition<State, Action> {
  return { to: state, actions };
}
