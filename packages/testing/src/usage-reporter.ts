import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { processorTimeOf } from '@callplane/local-servers';
import type { FileUsage } from './file-usage.js';
import { repositoryRoot } from './repository-root.js';

const FILES_SHOWN = 10;
const NOTHING: FileUsage = { path: '', importMs: 0, testsMs: 0, childrenMs: 0 };

/** Prints which test files used the most processor time. On two cores, that time decides how long a run takes. */
export default class UsageReporter {
  onRunComplete(): void {
    const file = process.env['CALLPLANE_TEST_USAGE'];
    if (file === undefined || !existsSync(file)) return;
    const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
    const usages = lines.map((text) => JSON.parse(text) as FileUsage);
    const postgres = processorTimeOf(Number(process.env['TEST_POSTGRES_PID']));
    const postgresMs = postgres === undefined ? 0 : postgres.ownMs + postgres.childrenMs;
    for (const line of usageTable(usages, postgresMs)) console.log(line);
  }
}

/**
 * The sums of all files, and the files with the most processor time.
 * @param postgresMs processor time of the PostgreSQL that the files share, without its open connections
 */
export function usageTable(files: readonly FileUsage[], postgresMs: number): string[] {
  const sum = (field: 'importMs' | 'testsMs' | 'childrenMs') => files.reduce((total, usage) => total + usage[field], 0);
  const all = { ...NOTHING, importMs: sum('importMs'), testsMs: sum('testsMs'), childrenMs: sum('childrenMs') };
  const slowest = [...files].sort((a, b) => totalMs(b) - totalMs(a)).slice(0, FILES_SHOWN);
  return [
    '',
    'Processor time (s):   all  imports   tests  servers and apps',
    row(all, `all ${files.length} files`),
    row({ ...NOTHING, childrenMs: postgresMs }, 'the shared PostgreSQL'),
    ...slowest.map((usage) => row(usage, relative(repositoryRoot, usage.path))),
  ];
}

function row(usage: FileUsage, name: string): string {
  const cell = (milliseconds: number, width: number) => (milliseconds / 1000).toFixed(1).padStart(width);
  const cells = [cell(totalMs(usage), 25), cell(usage.importMs, 9), cell(usage.testsMs, 8), cell(usage.childrenMs, 9)];
  return `${cells.join('')}  ${name}`;
}

function totalMs(usage: FileUsage): number {
  return usage.importMs + usage.testsMs + usage.childrenMs;
}
