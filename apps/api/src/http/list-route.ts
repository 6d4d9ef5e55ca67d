import { type Static, type TObject, type TProperties, type TString, Type } from 'typebox';
import type { Deps } from '../deps.js';
import { defineList } from './cursor.js';
import type { Call, RouteShape, StaticOr, UntaggedRoute } from './route.js';
import { namedObject, orNull } from './schemas.js';

export const PAGE_LIMIT_DEFAULT = 20;

export function pageLimit(rows: string) {
  return Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: PAGE_LIMIT_DEFAULT, description: `Maximum number of ${rows}.` }),
  );
}

const pageQuery = {
  limit: pageLimit('rows'),
  cursor: Type.Optional(
    Type.String({
      'x-document': { minLength: 1 },
      description: '`nextCursor` of the previous page. Opaque. Send the same filters with it.',
    }),
  ),
};

function page(item: TObject) {
  const { title } = item as { title?: string };
  return namedObject(`${title}Page`, {
    data: Type.Array(item),
    nextCursor: orNull(
      Type.String({ description: 'Send it as `cursor` to get the next page. Null on the last page.' }),
    ),
  });
}

interface Part<Position> {
  /** The row after which the page begins; null for the first page. */
  position: Position | null;
  beforeId: string | null;
  /** One row more than the page shows: it tells whether another page follows. */
  limit: number;
}

interface ListRoute<
  Params extends TObject | undefined,
  Filters extends TProperties,
  Position extends { id: TString },
  Row,
  ListCall,
> extends Omit<RouteShape, 'method' | 'params' | 'query' | 'body' | 'list' | 'responses'> {
  params?: Params;
  filters?: Filters;
  position: Position;
  /** Default: the id of the row. */
  positionOf?: (row: Row) => Static<TObject<Position>>;
  item: TObject;
  items: string;
  read(call: ListCall, part: Part<Static<TObject<Position>>>): PromiseLike<readonly Row[]>;
  present(row: Row, call: ListCall): object;
  /** Throws if the list is empty because its room or endpoint does not exist. */
  onEmpty?: (call: ListCall) => Promise<void>;
}

/** Declares a list. It takes turns with the other lists of its environment. */
export function listRoute<
  Row,
  Params extends TObject | undefined = undefined,
  Filters extends TProperties = TProperties,
  Position extends { id: TString } = { id: TString },
>(
  deps: Pick<Deps, 'readLimiter'>,
  list: ListRoute<
    Params,
    Filters,
    Position,
    Row,
    Call<StaticOr<Params, undefined>, Static<TObject<Filters>>, undefined, Static<TObject<Position>>>
  >,
): UntaggedRoute {
  const {
    filters,
    position,
    positionOf = ({ id }) => ({ id }),
    item,
    items,
    read,
    present,
    onEmpty,
    ...shape
  } = list as unknown as ListRoute<TObject, TProperties, { id: TString }, { id: string }, unknown>;
  return {
    ...shape,
    method: 'get',
    query: Type.Object({ ...filters, ...pageQuery }),
    list: defineList(shape.operationId, position),
    responses: { 200: { description: `One page of ${items}.`, schema: page(item) } },
    async handle(call) {
      const { caller, cursor, query } = call as Call<unknown, { limit?: number }, unknown, { id: string }>;
      const { limit = PAGE_LIMIT_DEFAULT } = query;
      const beforeId = cursor.position?.id ?? null;
      const found = await deps.readLimiter.list(caller.environmentId, async () => {
        const part = await read(call, { position: cursor.position, beforeId, limit: limit + 1 });
        if (part.length === 0) await onEmpty?.(call);
        return part;
      });
      const rows = found.slice(0, limit);
      const last = found.length > limit ? rows.at(-1) : undefined;
      const nextCursor = last === undefined ? null : cursor.encode(positionOf(last));
      return { status: 200, body: { data: rows.map((row) => present(row, call)), nextCursor } };
    },
  };
}
