import type { Command } from 'commander';
import type { Cli } from './cli.js';

/** The options that every command has. */
export interface OutputOptions {
  json?: true;
}

/** Adds a command with `--json` and a help text that ends with an example. */
export function addCommand(parent: Command, nameAndArguments: string, description: string, example: string): Command {
  return parent
    .command(nameAndArguments)
    .description(description)
    .option('--json', 'print one JSON object')
    .addHelpText('after', `\nExample:\n  $ ${example}`);
}

/** Prints the result as one JSON object, or as text for people. */
export function print(cli: Cli, options: OutputOptions, result: object, text: string): void {
  cli.write(options.json === true ? `${JSON.stringify(result)}\n` : `${text}\n`);
}

/** One column of a list. */
export interface Column<T> {
  header: string;
  cell: (row: T) => string;
  /** The cell where no header says what it is: in a pipe or a file. */
  plain?: (row: T) => string;
}

export function column<T>(header: string, cell: (row: T) => string, plain?: (row: T) => string): Column<T> {
  return { header, cell, ...(plain === undefined ? {} : { plain }) };
}

/**
 * Prints a list as `{ "data": […] }`, as a table with headers on a terminal, or as aligned lines without headers in a
 * pipe.
 */
export function printList<T extends object>(
  cli: Cli,
  options: OutputOptions,
  rows: readonly T[],
  columns: readonly Column<T>[],
): void {
  print(cli, options, { data: rows }, rows.length === 0 ? 'None.' : tableOf(cli, rows, columns));
}

/** A table with headers on a terminal, otherwise aligned lines. */
export function tableOf<T>(cli: Cli, rows: readonly T[], columns: readonly Column<T>[]): string {
  if (cli.isTerminal !== true) {
    return align(rows.map((row) => columns.map(({ cell, plain }) => (plain ?? cell)(row))));
  }
  // A column without any value says nothing.
  const shown = columns.filter(({ cell }) => rows.some((row) => cell(row) !== ''));
  return align([shown.map(({ header }) => header), ...rows.map((row) => shown.map(({ cell }) => cell(row)))]);
}

/** Quotes a name for output, so that control characters in it never reach the terminal. */
export function quoted(name: string): string {
  return JSON.stringify(name);
}

/** Pads each column to its widest cell. */
export function align(lines: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const line of lines) {
    for (const [column, cell] of line.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
