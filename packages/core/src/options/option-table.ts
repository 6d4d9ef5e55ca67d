import type { RecordingInput, RecordingMode } from '../recordings/recording.js';
import type { WebhookFilter } from '../webhooks/filter-type.js';

/** Texts of a field for its reads, for the creation of its resource and for changes. One text serves all three. */
type Description = string | { readonly read: string | null; readonly create: string; readonly update: string };

interface Common {
  readonly column: string;
  /** Chosen at the creation of the resource; no request changes it. */
  readonly isFixed?: true;
  /** Of the API reference. */
  readonly description: Description;
  /** The input of the console: its label and its hint. */
  readonly input: readonly [label: string, hint: string];
  /** The label of the value in the console and the command line. */
  readonly label: string;
}

/**
 * A setting of a resource that its owner may change. Everything that only passes options on reads their table: SQL,
 * presenters, the schemas of the API, the forms of the console and the command line.
 */
export type Option =
  | (Common & { readonly type: 'boolean'; readonly default: boolean; readonly texts: Record<'true' | 'false', string> })
  /** The texts have a key for each value. */
  | (Common & { readonly type: 'choice'; readonly default: string; readonly texts: Readonly<Record<string, string>> })
  /** Names with secret values. The database has sealed values, answers have masked ones. */
  | (Common & { readonly type: 'headers'; readonly default: Readonly<Record<string, string>>; readonly none: string })
  | (Common & { readonly type: 'filter'; readonly default: null; readonly none: string })
  /** Null is a value, and `none` says what it means. */
  | (Common & {
      readonly type: 'recording';
      readonly default: null;
      readonly texts: Record<RecordingMode, string>;
      readonly none: string;
    })
  | (Common & {
      readonly type: 'integer';
      readonly min: number;
      readonly max: number;
      readonly unit?: 'participants' | 'seconds';
      // With the default null, null is a value. `none` says what it means.
    } & ({ readonly default: number } | { readonly default: null; readonly none: string }));

export type OptionTable = Readonly<Record<string, Option>>;

type ValueOf<O extends Option> = O extends { type: 'boolean' }
  ? boolean
  : O extends { type: 'choice' }
    ? keyof O['texts']
    : O extends { type: 'recording' }
      ? RecordingInput | null
      : O extends { type: 'headers' }
        ? Record<string, string>
        : O extends { type: 'filter' }
          ? WebhookFilter | null
          : number | Extract<O['default'], null>;

export type OptionValue = ValueOf<Option>;

type FixedOf<Table extends OptionTable> = {
  [Name in keyof Table]: Table[Name] extends { isFixed: true } ? Name : never;
}[keyof Table];

/** The values of the options that may change. */
export type ChangingValues<Table extends OptionTable> = Omit<OptionValues<Table>, FixedOf<Table>>;

/** The values of all options of a table. */
export type OptionValues<Table extends OptionTable> = { -readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/** Each option with its name and its value. */
export function optionEntries<Table extends OptionTable>(
  table: Table,
  values: OptionValues<Table>,
): [name: string, option: Option, value: OptionValue][] {
  return Object.entries(table).map(([name, option]) => [name, option, values[name] as OptionValue]);
}

/** The options among the fields of a resource. */
export function optionsOf<Table extends OptionTable>(table: Table, values: OptionValues<Table>): OptionValues<Table> {
  return Object.fromEntries(
    optionEntries(table, values).map(([name, , value]) => [name, value]),
  ) as OptionValues<Table>;
}

export function optionDefaults<Table extends OptionTable>(table: Table): OptionValues<Table> {
  return Object.fromEntries(
    Object.entries(table).map(([name, option]) => [name, option.default]),
  ) as OptionValues<Table>;
}

/** A value for people. */
export function optionText(option: Option, value: OptionValue): string {
  if (option.type === 'boolean') return option.texts[value === true ? 'true' : 'false'];
  if (option.type === 'choice') return option.texts[value as string] ?? (value as string);
  if (option.type === 'headers') return Object.keys(value as object).join(', ') || option.none;
  if (value === null && option.default === null) return option.none;
  if (option.type === 'filter') return JSON.stringify(value);
  if (option.type === 'recording') return option.texts[(value as RecordingInput).mode];
  return Number(value).toLocaleString('en') + (option.unit === undefined ? '' : ` ${option.unit}`);
}
