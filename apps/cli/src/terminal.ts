/**
 * Control characters, separators of lines and marks that change the direction of text. They would steer a terminal, or
 * show a name other than it is.
 */
const STEERING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Quotes a name or another text from outside. */
export function quoted(text: string): string {
  return escaped(JSON.stringify(text));
}

/** Escapes what would steer a terminal. Line breaks stay. The escapes of JSON keep its meaning. */
export function printable(text: string): string {
  return text.split('\n').map(escaped).join('\n');
}

function escaped(text: string): string {
  return text.replace(STEERING, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Pads each column to its widest cell. A line break in a cell is escaped, so that each row stays one line. */
export function align(lines: readonly (readonly string[])[]): string {
  const rows = lines.map((line) => line.map(escaped));
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
