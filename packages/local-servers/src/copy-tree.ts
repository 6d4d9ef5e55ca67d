import { copyFile, mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Copies the files of a folder whose files may vanish meanwhile: those that are gone are left out.
 * @param isWanted decides for the path of each file and folder below `from`.
 */
export async function copyTree(from: string, to: string, isWanted: (path: string) => boolean): Promise<void> {
  const { mode } = await stat(from);
  await mkdir(to, { recursive: true, mode });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [path, copy] = [join(from, entry.name), join(to, entry.name)];
    if (!isWanted(path)) continue;
    try {
      await (entry.isDirectory() ? copyTree(path, copy, isWanted) : copyFile(path, copy));
    } catch (error) {
      // What vanished is `path` itself, or lies in it. A folder of the copy that is missing is an error.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || (await exists(path))) throw error;
    }
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
