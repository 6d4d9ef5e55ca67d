import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bootstrap.js';

/**
 * The existing files of this repository that git does not ignore.
 * @param patterns restrict them; all files without any
 */
export function trackedFiles(patterns: string[]): string[] {
  const listed = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...patterns],
    { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
  );
  return [...new Set(listed.split('\0'))].filter((file) => file !== '' && existsSync(join(root, file)));
}
