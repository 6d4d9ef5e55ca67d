/**
 * Comments, literals, quoted names and dollar-quoted bodies, whose semicolons end no statement; a semicolon; anything
 * else. Escape strings (`E'\''`) are not supported.
 */
const TOKEN = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[\s\S]*?\1|;|[^-/'"$;]+|[\s\S]/g;

/** The statements of an SQL script, without comments and semicolons. */
export function statementsOf(script: string): string[] {
  const statements: string[] = [];
  let statement = '';
  for (const [token] of script.matchAll(TOKEN)) {
    if (token === ';') {
      statements.push(statement);
      statement = '';
    } else {
      statement += token.startsWith('--') || token.startsWith('/*') ? ' ' : token;
    }
  }
  return [...statements, statement].map((statement) => statement.trim()).filter((statement) => statement !== '');
}
