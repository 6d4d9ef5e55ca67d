import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Works with a disk of this size. Does nothing where this process may mount none: outside of Linux, or not as root. */
export async function onSmallDisk(bytes: number, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'callplane-small-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    rmdirSync(folder);
    return;
  }
  try {
    await work(folder);
  } finally {
    execFileSync('umount', [folder]);
    rmdirSync(folder);
  }
}
