/** A table of packages or apps, in the form of apps/signaling/src/states/state-table.ts. */
export interface Machine {
  title: string;
  /** What the machine is about, in one sentence. */
  about: string;
  /** Where its table is written. */
  source: string;
  states: Record<string, Record<string, Cell>>;
}
type Cell = 'ignore' | 'never' | { to: string; actions: readonly string[] };

const HEAD = `# States of the gateway

<!-- Written by packages/dev/src/generate from the tables of apps/signaling. Do not edit; run "npm run generate". -->

Each state machine of the [signaling gateway](signaling.md) is a table without I/O. A row is an event, a column a state.
A cell has the next state, and the actions that the owner of the machine runs, in order.

- **–**: the event has no effect in this state.
- An empty cell: the event cannot happen in this state. If it does, the owner reports a defect, and nothing changes.

`;

export function stateTables(machines: readonly Machine[]): string {
  return HEAD + machines.map(section).join('\n');
}

function section({ title, about, source, states }: Machine): string {
  const names = Object.keys(states);
  const events = Object.keys(Object.values(states)[0] ?? {});
  const rows = events.map((event) => [`\`${event}\``, ...names.map((name) => cellOf(name, states[name]?.[event]))]);
  const table = [['event', ...names.map((name) => `\`${name}\``)], Array(names.length + 1).fill('---'), ...rows];
  const link = `[${source}](../${source})`;
  return `## ${title}\n\n${about} The states, events and actions are explained in ${link}.\n\n${table.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
}

function cellOf(state: string, cell: Cell | undefined): string {
  if (cell === undefined || cell === 'never') return '';
  if (cell === 'ignore') return '–';
  const next = cell.to === state ? 'stays' : `→ \`${cell.to}\``;
  return [next, ...cell.actions].join('<br>');
}
