/** What takes something from the release before, or asks more of what it writes. */
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

/**
 * Why the release before cannot run on what a migration leaves; empty when it can, or when the header says `contract:`
 * and the reason. New constraints are not judged here: rows that the release before wrote are put through them.
 */
export function tightenings(script: string): string[] {
  if (/^--\s*contract:\s*\S/im.test(script)) return [];
  const sql = script.replaceAll(/--.*$/gm, '').replaceAll(/\$(\w*)\$[\s\S]*?\$\1\$/g, "''");
  // A column that has its default first.
  const statements = sql
    .split(';')
    .map((statement) => statement.replaceAll(/DEFAULT\s+\S+\s+NOT\s+NULL/gi, 'DEFAULT x'));
  return statements.flatMap((statement) =>
    RULES.filter(([pattern]) => pattern.test(statement)).map(
      ([, what]) => `${what}: ${statement.trim().replaceAll(/\s+/g, ' ').slice(0, 120)}`,
    ),
  );
}
