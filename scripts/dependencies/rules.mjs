/** Rules about dependencies, without I/O. @typedef {import('./tree.mjs').Package} Package */

/** Licences of what the images hold: permissive, compatible with ours (Apache 2.0), nothing to publish. */
export const ALLOWED_LICENCES = [
  ...['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'CC0-1.0', 'ISC', 'MIT', 'Unlicense'],
  ...['Python-2.0', 'Zlib'],
];
/** What builds and tests use and nobody gets from us may have these as well. */
export const ALLOWED_FOR_TOOLS = ['CC-BY-4.0', 'EPL-2.0', 'MPL-2.0', 'PSF-2.0'];

/**
 * Whether an SPDX expression holds with these licences alone: one side of an OR, both of an AND.
 * @param {string} expression
 * @param {readonly string[]} allowed
 * @returns {boolean}
 */
export function isAllowed(expression, allowed) {
  const tokens = expression.match(/\(|\)|[^\s()]+/g) ?? [];
  let at = 0;
  /** @type {() => boolean} */
  const either = () => {
    let holds = both();
    while (tokens[at]?.toUpperCase() === 'OR') {
      at += 1;
      // Both sides are read, also when the first one holds.
      const right = both();
      holds = holds || right;
    }
    return holds;
  };
  /** @type {() => boolean} */
  const both = () => {
    let holds = one();
    while (tokens[at]?.toUpperCase() === 'AND') {
      at += 1;
      const right = one();
      holds = holds && right;
    }
    return holds;
  };
  /** @type {() => boolean} */
  const one = () => {
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

/**
 * @param {readonly Package[]} packages
 * @returns {string[]} what is wrong, one line for each
 */
export function judgeLicences(packages) {
  return packages.flatMap(({ name, version, licence, shipped }) => {
    const allowed = shipped ? ALLOWED_LICENCES : [...ALLOWED_LICENCES, ...ALLOWED_FOR_TOOLS];
    if (licence !== null && isAllowed(licence, allowed)) return [];
    const where = shipped ? 'in an image' : 'a tool';
    return [`${name}@${version} (${where}) has the licence ${licence ?? 'that it does not name'}`];
  });
}

/**
 * Every script that an install could run is either run on purpose or known and left out.
 * @param {readonly Package[]} packages
 * @param {{ built: readonly string[], ignored: readonly string[] }} listed
 * @returns {string[]}
 */
export function judgeInstallScripts(packages, { built, ignored }) {
  return packages
    .filter(({ name, scripts }) => scripts.length > 0 && !built.includes(name) && !ignored.includes(name))
    .map(({ name, version, scripts }) => `${name}@${version} has install scripts (${scripts.join(', ')})`);
}

/**
 * The rows of docs/decisions/0002-dependencies.md: names, why, what else there was.
 * @param {string} markdown
 * @returns {{ names: string[], why: string, others: string }[]}
 */
export function readTable(markdown) {
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

/**
 * @param {readonly string[]} catalogue
 * @param {ReturnType<typeof readTable>} rows
 * @returns {string[]}
 */
export function judgeTable(catalogue, rows) {
  const named = rows.flatMap(({ names }) => names);
  return [
    ...catalogue.filter((name) => !named.includes(name)).map((name) => `${name} has no row`),
    ...named.filter((name) => !catalogue.includes(name)).map((name) => `${name} has a row and is not in the catalogue`),
    ...rows
      .filter(({ why, others }) => why === '' || others === '')
      .map(({ names }) => `the row of ${names.join(', ')} does not say why it, or what else there was`),
  ];
}

/**
 * Direct dependencies that the tree holds in several versions.
 * @param {readonly Package[]} packages
 * @param {readonly string[]} catalogue
 * @returns {{ name: string, versions: string[], shipped: number }[]} `shipped`: how many of them are in images
 */
export function duplicates(packages, catalogue) {
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
