import { describe, expect, test } from '@jest/globals';
import { findIdioms, paragraphsOf } from './rules.js';

const found: (file: string, text: string) => string[] = (file, text): string[] =>
  findIdioms(paragraphsOf(file, text)).map(({ line, idiom }) => `${line} ${idiom}`);

test.each([
  ['Tells whoever waits.', 'whoever'],
  ['Nobody waits.', 'Nobody'],
  ['Without a line of ours.', 'of ours'],
  ['The line that tells of attempts.', 'tells of'],
  ['When a room is asked for.', 'is asked'],
  ['Every so many times the oldest.', 'so many'],
  ['Paused for so long, in milliseconds.', 'so long'],
  ['What became of the attempt.', 'What became of'],
  ['No deadlock can come about.', 'come about'],
  ['What is to be published.', 'is to be'],
  ['Sends them as well as it can.', 'as well as it can'],
])('finds the idiom in "%s"', (text, idiom) => {
  expect(found('a.md', text)).toEqual([`1 ${idiom}`]);
});

test.each([
  'Works so long as the lease is held.',
  'There are so many rows that a scan is slow.',
  'Somebodys and whoevers are no words.',
  'The claim is what a worker holds.',
])('accepts "%s"', (text) => {
  expect(found('a.md', text)).toEqual([]);
});

test('finds an idiom that continues on the next line, and reports its first line', () => {
  expect(found('a.ts', '/**\n * Nothing\n * of\n * ours.\n */')).toEqual(['3 of ours']);
  expect(found('a.md', 'First.\n\nIt is\nasked.')).toEqual(['3 is asked']);
});

test('does not join paragraphs, list items and table rows', () => {
  expect(found('a.md', 'It is\n\nasked.')).toEqual([]);
  expect(found('a.md', '- It is\n- asked')).toEqual([]);
  expect(found('a.md', '| it is\n| asked |')).toEqual([]);
});

test('shows the text around an idiom', () => {
  const [finding] = findIdioms(paragraphsOf('a.md', `${'before '.repeat(20)}nobody ${'after '.repeat(20)}`));
  expect(finding?.excerpt).toMatch(/^.*before nobody after .*$/);
  expect(finding?.excerpt.length).toBeLessThanOrEqual(100);
});

describe('the prose of a file', () => {
  test('excludes code blocks and inline code', () => {
    expect(found('a.md', '```sh\nnobody\n```\nRuns as `nobody`.\n\n~~~\nnobody\n~~~\n')).toEqual([]);
    expect(found('a.sh', '# Runs as `nobody`.')).toEqual([]);
  });

  test.each([
    ["const a = 'https://nobody';", []],
    ['const a = "it\'s // nobody";', []],
    ['const a = `// ${b ? `nobody` : "}"} // nobody`; // nobody', ['1 nobody']],
    ['const a = /[/\'"]/; // nobody', ['1 nobody']],
    ['const a = b / c; // nobody\nconst d = e / f;', ['1 nobody']],
    ["return /'/.test(a); // nobody", ['1 nobody']],
    ['const a = { b: `${{ c: 1 }}` }; /* nobody */', ['1 nobody']],
    ["const a = 'it\\'s'; // nobody", ['1 nobody']],
    ["logger.warn('nobody waits', { a: 'nobody' });", ['1 nobody']],
    ["throw new CallplaneError('code', `nobody waits for ${a}`);", ['1 nobody']],
    ["({ help:\n    'Nobody.' })", ['2 Nobody']],
    ["describe('nobody', () => test.each([a])('nobody', b));", ['1 nobody', '1 nobody']],
  ])('of TypeScript contains the comments and messages of: %s', (text, expected) => {
    expect(found('a.ts', text)).toEqual(expected);
  });

  test.each([
    ['a.sh', 'echo "# nobody" "${a#nobody}" # nobody', ['1 nobody']],
    ['a.yml', "user: nobody\ntest: '# nobody'\n# Runs as somebody.", ['3 somebody']],
    ['a.sql', "SELECT 'nobody' -- nobody\n/* somebody */", ['1 nobody', '2 somebody']],
    ['schema.prisma', 'model A {\n  /// nobody\n  id String\n}', ['2 nobody']],
    ['infra/Dockerfile', 'USER nobody\n# nobody', ['2 nobody']],
    ['a.json', '"nobody"', []],
  ])('of %s contains only its comments', (file, text, expected) => {
    expect(found(file, text)).toEqual(expected);
  });
});
