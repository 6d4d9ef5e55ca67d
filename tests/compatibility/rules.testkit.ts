/** Changes that remove something that the previous release uses, or that demand more of its writes. */
const RULES: readonly (readonly [RegExp, string])[] = [
  [/\bDROP\s+(?!DEFAULT\b|NOT\s+NULL\b|CONSTRAINT\b|INDEX\b)/i, 'drops something'],
  [/\bRENAME\b/i, 'renames something'],
  [/\bSET\s+NOT\s+NULL\b/i, 'forbids null'],
  [/\bALTER\s+(?:COLUMN\s+)?"?\w+"?\s+(?:SET\s+DATA\s+)?TYPE\b/i, 'changes a type'],
  [/\bDROP\s+DEFAULT\b/i, 'drops a default'],
  [
    /\bADD\s+(?:COLUMN\s+)?(?!CONSTRAINT\b)"?\w+"?\s[^,;]*\bNOT\s+NULL\b(?![^,;]*\bDEFAULT\b)/i,
    'adds a column that must be given',
  ],
];

/** Without an index, statements of the previous release stay correct, but may become slow until it is replaced. */
export function dropsIndexSilently(script: string): boolean {
  return /^\s*DROP\s+INDEX\b/im.test(script) && !/^--\s*contract:\s*\S/im.test(script);
}

/**
 * Reasons why the previous release cannot run after a migration. Empty if it can, or if the header states `contract:`
 * with a reason. Other tests check new constraints, by writing the rows of the previous release.
 */
export function tightenings(script: string): string[] {
  if (/^--\s*contract:\s*\S/im.test(script)) return [];
  const sql = script.replaceAll(/--.*$/gm, '').replaceAll(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''");
  // Normalizes a column definition with the default before NOT NULL.
  const statements = sql
    .split(';')
    .map((statement) => statement.replaceAll(/DEFAULT\s+\S+\s+NOT\s+NULL/gi, 'DEFAULT x'));
  return statements.flatMap((statement) =>
    RULES.filter(([pattern]) => pattern.test(statement)).map(
      ([, what]) => `${what}: ${statement.trim().replaceAll(/\s+/g, ' ').slice(0, 120)}`,
    ),
  );
}
