/**
 * Forms that this repository does not use, as rules of oxlint: a selector of ESLint and what to write instead. The rules
 * are a plugin, because oxlint has no `no-restricted-syntax`.
 */
/** @type {Record<string, [selector: string, message: string]>} */
const FORBIDDEN = {
  'packed-lines': [
    'ObjectExpression > SpreadElement > ObjectExpression',
    'Write the properties themselves: a spread of an object literal only packs lines.',
  ],
  enums: ['TSEnumDeclaration', 'Use a union of literals, which needs no code at run time.'],
  'ambient-environment': [
    "MemberExpression[object.name='process'][property.name='env']",
    'The environment is parsed once, in config.ts through runtime.',
  ],
  'ambient-time': [
    "CallExpression[callee.object.name='Date'][callee.property.name='now'], NewExpression[callee.name='Date'][arguments.length=0]",
    'Take the time from the clock that is passed in.',
  ],
  'ambient-randomness': [
    "CallExpression[callee.object.name='Math'][callee.property.name='random']",
    'Take randomness from the source that is passed in.',
  ],
  'url-can-parse': [
    "MemberExpression[object.name='URL'][property.name='canParse']",
    'Node 20 answers wrongly for characters outside ASCII; use parseUrl of core.',
  ],
};

/** @typedef {{ report(problem: { node: unknown, message: string }): void }} RuleContext */

const rules = Object.fromEntries(
  Object.entries(FORBIDDEN).map(([name, [selector, message]]) => [
    name,
    {
      /** @param {RuleContext} context */
      create: (context) => ({
        /** @param {unknown} node */
        [selector]: (node) => {
          context.report({ node, message });
        },
      }),
    },
  ]),
);

export default { meta: { name: 'callplane' }, rules };
