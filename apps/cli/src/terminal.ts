import { escapeSteering } from '@callplane/core';

/** Quotes a name or another text from outside. */
export function quoted(text: string): string {
  return escapeSteering(JSON.stringify(text));
}

/** Escapes characters that would steer a terminal. Line breaks stay. */
export function printable(text: string): string {
  return text.split('\n').map(escapeSteering).join('\n');
}

/** Pads each column to its widest cell. A line break in a cell is escaped, so that each row stays one line. */
export function align(lines: readonly (readonly string[])[]): string {
  const rows = lines.map((line) => line.map(escapeSteering));
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
