import { describe, expect, test } from '@jest/globals';
import { findCircles, importsOf } from './circles.js';

const graph = (edges: Record<string, string[]>) => new Map(Object.entries(edges));

describe('the imports of a file', () => {
  test('are those that load a relative module', () => {
    const text = [
      "import { a } from './a.js';",
      "import './b.js';",
      'import {',
      '  c,',
      '  type D,',
      "} from '../c.js';",
      "export { e } from './e.js';",
      "export * from './f.js';",
    ].join('\n');
    expect(importsOf(text)).toEqual(['./a.js', './b.js', '../c.js', './e.js', './f.js']);
  });

  test('exclude types, packages, import() and comments', () => {
    const text = [
      "import type { A } from './a.js';",
      "export type { B } from './b.js';",
      "import { c } from '@callplane/core';",
      "const d = () => import('./d.js');",
      "// import { e } from './e.js';",
    ].join('\n');
    expect(importsOf(text)).toEqual([]);
  });
});

describe('circles', () => {
  test('are found between two files, through others, and from a file to itself', () => {
    expect(findCircles(graph({ a: ['b'], b: ['a'] }))).toEqual([['a', 'b']]);
    expect(findCircles(graph({ main: ['c'], c: ['b'], b: ['a'], a: ['c'] }))).toEqual([['a', 'b', 'c']]);
    expect(findCircles(graph({ a: ['a'] }))).toEqual([['a']]);
  });

  test('that share a file are one group', () => {
    expect(findCircles(graph({ a: ['b', 'c'], b: ['a'], c: ['d'], d: ['a'] }))).toEqual([['a', 'b', 'c', 'd']]);
  });

  test('are not reported for files that only share an import', () => {
    expect(findCircles(graph({ a: ['b', 'c'], b: ['d'], c: ['d', 'b'], d: [] }))).toEqual([]);
  });
});
