/** Rules about dependencies, without I/O. */
import type { Package } from './tree.js';

/**
 * Licences allowed in the images: permissive, compatible with Apache 2.0, and without a duty to publish source code.
 */
export const ALLOWED_LICENCES = [
  ...['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'CC0-1.0', 'ISC', 'MIT', 'Unlicense'],
  ...['Python-2.0', 'Zlib'],
];
/** Licences that are also allowed for build and test tools, which this project does not distribute. */
export const ALLOWED_FOR_TOOLS = ['CC-BY-4.0', 'EPL-2.0', 'MPL-2.0', 'PSF-2.0'];

/** Licences that manifests spell in another way than SPDX. */
const SPELLINGS: Readonly<Record<string, string>> = { 'Apache 2.0': 'Apache-2.0' };

/** Whether an SPDX expression is satisfied by `allowed` alone: one side of an OR, both sides of an AND. */
export function isAllowed(expression: string, allowed: readonly string[]): boolean {
  const tokens = expression.match(/\(|\)|[^\s()]+/g) ?? [];
  let at = 0;
  const either: () => boolean = (): boolean => {
    let holds = both();
    while (tokens[at]?.toUpperCase() === 'OR') {
      at += 1;
      // Reads the right side even if the left one holds, because the call consumes its tokens.
      const right = both();
      holds = holds || right;
    }
    return holds;
  };
  const both: () => boolean = (): boolean => {
    let holds = one();
    while (tokens[at]?.toUpperCase() === 'AND') {
      at += 1;
      const right = one();
      holds = holds && right;
    }
    return holds;
  };
  const one: () => boolean = (): boolean => {
    const token = tokens[at];
    at += 1;
    if (token !== '(') return token !== undefined && allowed.includes(token);
    const holds = either();
    if (tokens[at] !== ')') return false;
    at += 1;
    return holds;
  };
  return either() && at === tokens.length;
}

/** @returns the violations, one line each */
export function checkLicences(packages: readonly Package[]): string[] {
  return packages.flatMap(({ name, version, licence, shipped }) => {
    const allowed = shipped ? ALLOWED_LICENCES : [...ALLOWED_LICENCES, ...ALLOWED_FOR_TOOLS];
    if (licence !== null && isAllowed(SPELLINGS[licence] ?? licence, allowed)) return [];
    const where = shipped ? 'in an image' : 'a tool';
    return [`${name}@${version} (${where}) ${licence === null ? 'names no licence' : `has the licence ${licence}`}`];
  });
}

/** Finds install scripts that are neither run on purpose nor knowingly left out. */
export function checkInstallScripts(
  packages: readonly Package[],
  { built, ignored }: { built: readonly string[]; ignored: readonly string[] },
): string[] {
  return packages
    .filter(({ name, scripts }) => scripts.length > 0 && !built.includes(name) && !ignored.includes(name))
    .map(({ name, version, scripts }) => `${name}@${version} has install scripts (${scripts.join(', ')})`);
}

/** The rows of docs/decisions/0002-dependencies.md: names, reason, alternatives. */
export function readTable(markdown: string): { names: string[]; why: string; others: string }[] {
  return markdown
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[\s|-]+$/.test(line) && !/^\|\s*dependency\s*\|/.test(line))
    .map((line) => {
      const [names = '', why = '', others = ''] = line
        .slice(1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim());
      return { names: names.split(/,\s*/), why, others };
    });
}

export function checkTable(catalogue: readonly string[], rows: ReturnType<typeof readTable>): string[] {
  const named = rows.flatMap(({ names }) => names);
  return [
    ...catalogue.filter((name) => !named.includes(name)).map((name) => `${name} has no row`),
    ...named.filter((name) => !catalogue.includes(name)).map((name) => `${name} has a row and is not in the catalogue`),
    ...rows
      .filter(({ why, others }) => why === '' || others === '')
      .map(({ names }) => `the row of ${names.join(', ')} gives no reason or no alternatives`),
  ];
}

/**
 * Direct dependencies of which the tree holds several versions.
 * @returns `shipped`: the number of versions in images
 */
export function duplicates(
  packages: readonly Package[],
  catalogue: readonly string[],
): { name: string; versions: string[]; shipped: number }[] {
  return catalogue
    .map((name) => {
      const found = packages.filter((each) => each.name === name);
      return {
        name,
        versions: found.map(({ version }) => version),
        shipped: found.filter(({ shipped }) => shipped).length,
      };
    })
    .filter(({ versions }) => versions.length > 1);
}
