import type { Database } from '@callplane/db';
import type { Command, Option } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { align } from './terminal.js';

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

/** What a list shows of a row below a header, and where no header says what it is: in a pipe or a file. */
export type Cell = string | { cell: string; plain: string };

/** The columns of a list, by their headers. */
export type Columns<T> = Readonly<Record<string, (row: T) => Cell>>;

/** A number: `2` below `ROOMS`, and `2 rooms` without a header. */
export function counted(count: number, noun: string): Cell {
  return { cell: String(count), plain: `${count} ${noun}` };
}

/** A value that may be missing: `800` below `CAPACITY`, and `capacity 800` without a header. */
export function named(name: string, value: string | number | Date | null): Cell {
  if (value === null) return '';
  const cell = value instanceof Date ? value.toISOString() : String(value);
  return { cell, plain: `${name} ${cell}` };
}

/**
 * Prints a list as `{ "data": […] }`, as a table with headers on a terminal, or as aligned lines without headers in a
 * pipe.
 */
export function printList<T extends object>(
  cli: Cli,
  options: OutputOptions,
  rows: readonly T[],
  columns: Columns<T>,
): void {
  print(cli, options, { data: rows }, rows.length === 0 ? 'None.' : tableOf(cli, rows, columns));
}

export interface ListCommand<T extends object, Options extends OutputOptions> {
  description: string;
  example: string;
  filters?: readonly Option[];
  rows: (database: Database, options: Options) => PromiseLike<readonly T[]>;
  columns: Columns<T>;
}

/** Adds a command that reads rows and prints them as a list. */
export function addList<T extends object, Options extends OutputOptions>(
  parent: Command,
  cli: Cli,
  { description, example, filters = [], rows, columns }: ListCommand<T, Options>,
  nameAndArguments = 'list',
): void {
  const command = addCommand(parent, nameAndArguments, description, example);
  for (const filter of filters) command.addOption(filter);
  command.action((options: Options) =>
    withDatabase(cli, async (database) => printList(cli, options, await rows(database, options), columns)),
  );
}

/** A table with headers on a terminal, otherwise aligned lines. */
export function tableOf<T>(cli: Cli, rows: readonly T[], columns: Columns<T>): string {
  const texts = (form: 'cell' | 'plain', row: T): string[] =>
    Object.values(columns).map((cellOf) => {
      const cell = cellOf(row);
      return typeof cell === 'string' ? cell : cell[form];
    });
  if (cli.isTerminal !== true) return align(rows.map((row) => texts('plain', row)));
  const table = [Object.keys(columns), ...rows.map((row) => texts('cell', row))];
  // A column without any value says nothing.
  const [headers, ...lines] = table;
  const isShown = (headers ?? []).map((_, index) => lines.some((line) => line[index] !== ''));
  return align(table.map((line) => line.filter((_, index) => isShown[index])));
}
