import pg from 'pg';

/** A column of a statement's result, as PostgreSQL describes it without running the statement. */
export interface DescribedColumn {
  name: string;
  kind: string;
  /** Whether it is a column of a table that may be null. Undefined if PostgreSQL cannot tell, as of an expression. */
  nullable: boolean | undefined;
}

interface Field {
  name: string;
  dataTypeID: number;
  tableID: number;
  columnID: number;
}

/** The kinds of JavaScript values that node-postgres makes of PostgreSQL's types. */
const KINDS: Record<string, string> = {
  bool: 'boolean',
  int2: 'number',
  int4: 'number',
  oid: 'number',
  float4: 'number',
  float8: 'number',
  timestamptz: 'Date',
  timestamp: 'Date',
  date: 'Date',
  bytea: 'bytes',
  json: 'object',
  jsonb: 'object',
};

/** Node-postgres' part of the extended protocol that describes a statement; its types leave it out. */
interface Wire {
  parse(message: { name: string; text: string; types: [] }): void;
  describe(message: { type: 'S'; name: string }): void;
  sync(): void;
}

/** Prepares each statement on a migrated database, and asks PostgreSQL for its columns. */
export class Describer {
  readonly #client: pg.Client;
  #types = new Map<number, string>();
  #nullable = new Set<string>();

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async open(url: string): Promise<Describer> {
    const describer = new Describer(new pg.Client({ connectionString: url }));
    const client = describer.#client;
    await client.connect();
    const types = await client.query<{ oid: number; name: string }>('SELECT oid, typname AS name FROM pg_type');
    describer.#types = new Map(types.rows.map(({ oid, name }) => [oid, name]));
    const columns = await client.query<{ key: string }>(`
      SELECT attrelid || ' ' || attnum AS key FROM pg_attribute WHERE NOT attnotnull AND attnum > 0`);
    describer.#nullable = new Set(columns.rows.map(({ key }) => key));
    return describer;
  }

  async describe(text: string): Promise<DescribedColumn[]> {
    const fields = await this.#fields(text);
    return fields.map(({ name, dataTypeID, tableID, columnID }) => ({
      name,
      kind: this.#kindOf(dataTypeID),
      nullable: tableID === 0 ? undefined : this.#nullable.has(`${tableID} ${columnID}`),
    }));
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  #kindOf(oid: number): string {
    const name = this.#types.get(oid) ?? '';
    return name.startsWith('_') ? `${KINDS[name.slice(1)] ?? 'string'}[]` : (KINDS[name] ?? 'string');
  }

  #fields(text: string): Promise<Field[]> {
    return new Promise((resolve, reject) => {
      let fields: Field[] = [];
      this.#client.query({
        submit(connection: pg.Connection): void {
          const wire = connection as unknown as Wire;
          wire.parse({ name: '', text, types: [] });
          wire.describe({ type: 'S', name: '' });
          wire.sync();
        },
        handleRowDescription: (message: { fields: Field[] }) => void (fields = message.fields),
        handleError: reject,
        handleReadyForQuery: () => resolve(fields),
      });
    });
  }
}
