import { IGNORE, NEVER, type StateTable } from './state-table.js';

export interface MachineOwner<State extends string, Event extends string, Action extends string> {
  run(action: Action): void;
  /** Called for an event that cannot happen in the state. */
  onUnexpected(state: State, event: Event): void;
}

/** Follows a table of states: changes the state, then lets the owner run the actions. */
export class Machine<State extends string, Event extends string, Action extends string> {
  readonly #table: StateTable<State, Event, Action>;
  readonly #owner: MachineOwner<State, Event, Action>;
  #state: State;

  constructor(table: StateTable<State, Event, Action>, initial: State, owner: MachineOwner<State, Event, Action>) {
    this.#table = table;
    this.#state = initial;
    this.#owner = owner;
  }

  get state(): State {
    return this.#state;
  }

  dispatch(event: Event): void {
    const cell = this.#table[this.#state][event];
    if (cell === IGNORE) return;
    if (cell === NEVER) {
      this.#owner.onUnexpected(this.#state, event);
      return;
    }
    this.#state = cell.to;
    for (const action of cell.actions) this.#owner.run(action);
  }
}
