import type { Database } from '@callplane/db';
import type { Command, Option } from 'commander';
import { withDatabase, type Cli } from './cli.js';
import { align } from './terminal.js';

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

export function print(cli: Cli, options: OutputOptions, result: object, text: string): void {
  cli.write(options.json === true ? `${JSON.stringify(result)}\n` : `${text}\n`);
}

/** A cell of a list; null is shown as nothing. */
type Cell = string | number | Date | null;

export type Columns<T> = Readonly<Record<string, (row: T) => Cell>>;

/** Prints a list as `{ "data": […] }`, or as a table. */
export function printList<T extends object>(
  cli: Cli,
  options: OutputOptions,
  rows: readonly T[],
  columns: Columns<T>,
): void {
  print(cli, options, { data: rows }, rows.length === 0 ? 'None.' : tableOf(rows, columns));
}

interface ListCommand<T extends object, Options extends OutputOptions> {
  name?: string;
  description: string;
  example: string;
  filters?: readonly Option[];
  rows: (database: Database, options: Options) => PromiseLike<readonly T[]>;
  columns: Columns<T>;
}

export function addList<T extends object, Options extends OutputOptions>(
  parent: Command,
  cli: Cli,
  { name = 'list', description, example, filters = [], rows, columns }: ListCommand<T, Options>,
): void {
  const command = addCommand(parent, name, description, example);
  for (const filter of filters) command.addOption(filter);
  command.action((options: Options) =>
    withDatabase(cli, async (database) => printList(cli, options, await rows(database, options), columns)),
  );
}

/** A table with headers, without the columns that have no value. */
export function tableOf<T>(rows: readonly T[], columns: Columns<T>): string {
  const table = [
    Object.keys(columns),
    ...rows.map((row) => Object.values(columns).map((cellOf) => textOf(cellOf(row)))),
  ];
  const isShown = Object.keys(columns).map((_, column) => table.slice(1).some((line) => line[column] !== ''));
  return align(table.map((line) => line.filter((_, column) => isShown[column])));
}

function textOf(cell: Cell): string {
  return cell instanceof Date ? cell.toISOString() : String(cell ?? '');
}
