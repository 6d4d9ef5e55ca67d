import { optionEntries, type Option, type OptionTable, type OptionValue, type OptionValues } from '@callplane/core';
import { Prisma } from '../generated/client.js';
import type { Column } from './sql.js';

const TYPES = {
  boolean: 'boolean',
  choice: 'text',
  integer: 'int',
  recording: 'jsonb',
  headers: 'jsonb',
  filter: 'jsonb',
} as const satisfies Record<Option['type'], string>;

const storedValue = (value: OptionValue) =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : value;

/** The columns of options, for an INSERT or an UPDATE. */
export function optionColumns(table: OptionTable): Prisma.Sql {
  return Prisma.raw(
    Object.values(table)
      .map(({ column }) => column)
      .join(', '),
  );
}

/** The columns of options of the table `alias` under the names of the options, for a SELECT. */
export function optionFields(table: OptionTable, alias: string): Prisma.Sql {
  return Prisma.raw(
    Object.entries(table)
      .map(([name, { column }]) => `${alias}.${column} AS "${name}"`)
      .join(', '),
  );
}

/** The values for {@link optionColumns}. */
export function optionParameters<Table extends OptionTable>(table: Table, values: OptionValues<Table>): Prisma.Sql {
  const typed = ({ type }: Option, value: OptionValue) => Prisma.sql`${storedValue(value)}::${Prisma.raw(TYPES[type])}`;
  return Prisma.join(optionEntries(table, values).map(([, option, value]) => typed(option, value)));
}

/** The columns of options for `newRows`. */
export function optionRows<Table extends OptionTable>(
  table: Table,
  rows: readonly OptionValues<Table>[],
): Record<string, Column> {
  return Object.fromEntries(
    Object.entries(table).map(([name, { column, type }]): [string, Column] => [
      column,
      [TYPES[type], rows.map((row) => storedValue(row[name] as OptionValue))],
    ]),
  );
}

/** The `select` of options, for a model of Prisma. */
export function selectedOptions<Table extends OptionTable>(table: Table): Record<keyof Table, true> {
  return Object.fromEntries(Object.keys(table).map((name) => [name, true])) as Record<keyof Table, true>;
}
