import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../bootstrap.js';

/** Files that no image needs. */
const LEFT_OUT = [':(exclude).ci', ':(exclude)tests', ':(exclude)lab'];

/**
 * Writes the build context of all images as one archive of the committed sources:
 * `docker build -f infra/Dockerfile --build-arg APP=api - < callplane-0.1.0-images.tar.gz`. The same commit gives the same
 * bytes: git takes the times from the commit, and `gzip -n` writes none.
 */
export async function writeImageContext(folder: string, version: string): Promise<void> {
  const tar = join(folder, `callplane-${version}-images.tar`);
  const failure = 'The build context of the images cannot be written';
  await run('git', ['archive', '--format=tar', `--output=${tar}`, 'HEAD', '--', '.', ...LEFT_OUT], { failure });
  await run('gzip', ['-n', tar], { failure });
  rmSync(tar, { force: true });
}
