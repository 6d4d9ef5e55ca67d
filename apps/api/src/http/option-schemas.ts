import type { Option, OptionTable, OptionValues } from '@callplane/core';
import { Type, type TOptional, type TSchema, type TUnsafe } from 'typebox';
import { RecordSchema } from '../recordings/recordings.schemas.js';
import { oneOf, orNull } from './schemas.js';

type Use = 'read' | 'create' | 'update';
type Schemas<Values> = { [Name in keyof Values]: TUnsafe<Values[Name]> };
type OptionalSchemas<Values> = { [Name in keyof Values]: TOptional<TUnsafe<Values[Name]>> };

/**
 * The schemas of options in an answer, in a body that creates their resource, and in one that changes it.
 * @param readsBounds whether answers document the bounds of numbers, too.
 */
export function optionSchemas<Table extends OptionTable>(table: Table, { readsBounds }: { readsBounds: boolean }) {
  const each = (schemaFor: (option: Option) => TSchema) =>
    Object.fromEntries(Object.entries(table).map(([name, option]) => [name, schemaFor(option)]));
  return {
    read: each((option) => schemaOf(option, 'read', readsBounds)) as Schemas<OptionValues<Table>>,
    create: each((option) => Type.Optional(schemaOf(option, 'create'))) as OptionalSchemas<OptionValues<Table>>,
    update: each((option) => Type.Optional(schemaOf(option, 'update'))) as OptionalSchemas<OptionValues<Table>>,
  };
}

function schemaOf(option: Option, use: Use, isBounded = true): TSchema {
  const text = typeof option.description === 'string' ? option.description : option.description[use];
  const description = text === null ? {} : { description: text };
  const defaults = use === 'create' ? { default: option.default } : {};
  if (option.type === 'boolean') return { ...Type.Boolean(description), ...defaults };
  if (option.type === 'choice') return { ...oneOf(Object.keys(option.texts), text ?? undefined), ...defaults };
  if (option.type === 'recording') return { ...orNull(RecordSchema), ...description, ...defaults };
  const bounds = isBounded ? { minimum: option.min, maximum: option.max } : {};
  if (option.default === null) return { ...orNull(Type.Integer({ ...bounds, ...description })), ...defaults };
  return Type.Integer({ ...bounds, ...defaults, ...description });
}
