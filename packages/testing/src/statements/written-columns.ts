/** The columns that the INSERTs of a statement write, as `table.column`. */
export function insertedColumns(text: string): string[] {
  return [...plain(text).matchAll(/\bINSERT INTO (\w+)(?: AS \w+)?\s*\(([^)]*)\)/g)].flatMap(([, table, columns]) =>
    String(columns)
      .split(',')
      .map((column) => `${table}.${column.trim()}`),
  );
}

/** The same of its UPDATEs, including `ON CONFLICT DO UPDATE`. */
export function updatedColumns(text: string): string[] {
  const statement = plain(text);
  return [
    ...statement.matchAll(/\bUPDATE (\w+)(?:\s+(?:AS )?\w+)?\s+SET\s+/g),
    ...statement.matchAll(/\bINSERT INTO (\w+)[^]*?\bDO UPDATE\s+SET\s+/g),
  ].flatMap((match) =>
    [...assignmentsOf(statement.slice(match.index + match[0].length)).matchAll(/(?:^|,)\s*(?:\w+\.)?(\w+)\s*=/g)].map(
      ([, column]) => `${match[1]}.${column}`,
    ),
  );
}

/** Without comments, and without the quotes and the schema in Prisma's statements. */
function plain(text: string): string {
  return text.replaceAll(/--.*$/gm, '').replaceAll('"', '').replaceAll('public.', '');
}

/** The assignments at the beginning of a text, without the text in parentheses. */
function assignmentsOf(text: string): string {
  let depth = 0;
  let kept = '';
  for (const part of text.split(/([()]|\b(?:FROM|WHERE|RETURNING)\b)/)) {
    if (part === '(') depth += 1;
    else if (part === ')') depth -= 1;
    else if (depth === 0 && /^(?:FROM|WHERE|RETURNING)$/.test(part)) break;
    else if (depth === 0) kept += part;
    if (depth < 0) break;
  }
  return kept;
}
