import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import ts from 'typescript';
import { repositoryRoot } from '../resources.js';

/** The kind of a value in JavaScript, with `[]` for an array of it. `any` fits every column. */
export interface DeclaredColumn {
  name: string;
  kind: string;
  nullable: boolean;
  /** Whether rows may lack it. */
  optional: boolean;
}

/** A call of `$queryRaw` or `$executeRaw` in the product. */
export interface CallSite {
  /** File and line. */
  place: string;
  /** The constant parts of its statement, which identify it. */
  parts: readonly string[];
  /** The columns of the rows that its type declares; null if it declares none. */
  columns: readonly DeclaredColumn[] | null;
}

const SOURCES = 'packages/db/src';
const CALLS = new Set(['$queryRaw', '$executeRaw']);

/** Reads the statements and their declared rows from the sources, with TypeScript's own types. */
export function readCallSites(): { sites: CallSite[]; problems: string[] } {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(repositoryRoot, 'tsconfig.json'), (file) => readFileSync(file, 'utf8')).config,
    ts.sys,
    repositoryRoot,
  );
  const program = ts.createProgram([join(repositoryRoot, SOURCES, 'index.ts')], options);
  const checker = program.getTypeChecker();
  const sites: CallSite[] = [];
  const problems: string[] = [];
  for (const file of program.getSourceFiles()) {
    const path = relative(repositoryRoot, file.fileName);
    if (!path.startsWith(SOURCES) || path.includes('/generated/') || path.endsWith('/client/sql.ts')) continue;
    const visit = (node: ts.Node): void => {
      ts.forEachChild(node, visit);
      const place = () => `${path}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}`;
      if (ts.isFunctionLike(node) && usesBoth(node)) {
        problems.push(`${place()}: the function uses models and SQL (docs/decisions/0003-models-and-sql.md)`);
      }
      if (!ts.isTaggedTemplateExpression(node) || !ts.isPropertyAccessExpression(node.tag)) return;
      const call = node.tag.name.text;
      if (!CALLS.has(call)) return;
      const parts = partsOf(node.template);
      const row = call === '$executeRaw' ? undefined : rowOf(checker, node);
      try {
        sites.push({ place: place(), parts, columns: row === undefined ? null : columnsOf(checker, row, node) });
      } catch (error) {
        problems.push(`${place()}: ${(error as Error).message}`);
      }
    };
    visit(file);
  }
  return { sites, problems };
}

function usesBoth(node: ts.Node): boolean {
  let [models, sql] = [false, false];
  const visit = (child: ts.Node): void => {
    if (ts.isPropertyAccessExpression(child)) {
      if (CALLS.has(child.name.text)) sql = true;
      if (
        ts.isPropertyAccessExpression(child.expression) &&
        /^(find|create|update|delete|upsert|count|aggregate)/.test(child.name.text)
      ) {
        const owner = child.expression.expression.getText();
        if (/^(db|prisma)$|\.prisma$/.test(owner)) models = true;
      }
    }
    ts.forEachChild(child, visit);
  };
  visit(node);
  return models && sql;
}

function partsOf(template: ts.TemplateLiteral): string[] {
  if (ts.isNoSubstitutionTemplateLiteral(template)) return [template.text];
  return [template.head.text, ...template.templateSpans.map(({ literal }) => literal.text)];
}

/** The type of a row, of `PromiseLike<Row[]>`. Undefined if the caller sees only `unknown`, which casts nothing. */
function rowOf(checker: ts.TypeChecker, node: ts.TaggedTemplateExpression): ts.Type | undefined {
  const signature = checker.getResolvedSignature(node);
  const [rows] = signature === undefined ? [] : typeArguments(checker, signature.getReturnType());
  const [row] = rows === undefined || rows.flags & ts.TypeFlags.Unknown ? [] : typeArguments(checker, rows);
  return row === undefined || row.flags & ts.TypeFlags.Unknown ? undefined : row;
}

function typeArguments(checker: ts.TypeChecker, type: ts.Type): readonly ts.Type[] {
  return checker.getTypeArguments(type as ts.TypeReference);
}

function columnsOf(checker: ts.TypeChecker, row: ts.Type, node: ts.Node): DeclaredColumn[] {
  if (row.flags & (ts.TypeFlags.TypeParameter | ts.TypeFlags.Any)) throw new Error('the type of its rows is open');
  const rows = row.isUnion() ? row.types : [row];
  const names = new Set(rows.flatMap((each) => each.getApparentProperties().map(({ name }) => name)));
  return [...names].map((name) => {
    const properties = rows.map((each) => checker.getPropertyOfType(each, name));
    const kinds = new Set(
      properties.flatMap((property) =>
        property === undefined ? ['null'] : [...kindsOf(checker, checker.getTypeOfSymbolAtLocation(property, node))],
      ),
    );
    const nullable = kinds.delete('null') || kinds.has('any');
    const optional = properties.some((property) => property !== undefined && property.flags & ts.SymbolFlags.Optional);
    kinds.delete('undefined');
    return { name, kind: [...kinds].sort().join(' | '), nullable, optional };
  });
}

const FLAGS: readonly [ts.TypeFlags, string][] = [
  [ts.TypeFlags.Null, 'null'],
  [ts.TypeFlags.StringLike, 'string'],
  [ts.TypeFlags.NumberLike, 'number'],
  [ts.TypeFlags.BooleanLike, 'boolean'],
  [ts.TypeFlags.BigIntLike, 'bigint'],
  [ts.TypeFlags.Undefined, 'undefined'],
  [ts.TypeFlags.Any | ts.TypeFlags.Unknown, 'any'],
];

function kindsOf(checker: ts.TypeChecker, type: ts.Type): Set<string> {
  if (type.isUnion()) return new Set(type.types.flatMap((part) => [...kindsOf(checker, part)]));
  const known = FLAGS.find(([flag]) => type.flags & flag);
  if (known !== undefined) return new Set([known[1]]);
  if (checker.isArrayType(type)) {
    const [element] = typeArguments(checker, type);
    const kinds = element === undefined ? ['any'] : [...kindsOf(checker, element)];
    return new Set([`${kinds.join(' | ')}[]`]);
  }
  const name = type.getSymbol()?.name ?? '';
  if (name === 'Date') return new Set(['Date']);
  return new Set([/^(Buffer|Uint8Array)$/.test(name) ? 'bytes' : 'object']);
}
