import { PATH_ID_PATTERN } from '@callplane/core';
import { Type, type TObject, type TProperties, type TSchema } from 'typebox';

/** A body or query of named fields; a body knows no others. */
export function strictObject<T extends TProperties>(
  properties: T,
  options: { title?: string; dependentRequired?: Record<string, string[]> } = {},
): TObject<T> {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

export function pathId(description: string) {
  return Type.String({ pattern: PATH_ID_PATTERN, description });
}

/** A text that is trimmed of Unicode white space before its code points are counted and it is stored. */
export function trimmedText(max: number, description: string) {
  return Type.String({ 'x-trimmedLength': [1, max], description: `${description} Trimmed, 1-${max} characters.` });
}

/** An application-defined JSON object; it comes back equal to what was sent. */
export function metadataObject(description: string) {
  return Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    default: {},
    description: `${description} At most 16 KiB once serialised.`,
  });
}

export const timestamp = (description: string) => Type.String({ format: 'date-time', description });

export const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** A closed choice of words. */
export function oneOf<const T extends string>(values: readonly T[], description?: string) {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], ...(description === undefined ? {} : { description }) });
}

export const PAGE_LIMIT_DEFAULT = 20;

/**
 * Query parameters that every list takes.
 * @param list whose cursors are accepted.
 */
export function pageQuery(list: string) {
  return {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, default: PAGE_LIMIT_DEFAULT, description: 'Rows at most.' }),
    ),
    cursor: Type.Optional(Type.String({ 'x-cursor': list, description: '`nextCursor` of the page before. Opaque.' })),
  };
}

/** The shape of every list. */
export function page(title: string, item: TSchema) {
  return Type.Object(
    {
      data: Type.Array(item),
      nextCursor: orNull(Type.String({ description: 'Send it as `cursor` for the next page; null on the last one.' })),
    },
    { title, additionalProperties: false },
  );
}
