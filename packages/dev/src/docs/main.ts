/** `npm run docs [-- --base /path/]`: builds the site of the documents into docs/dist, to be served at /docs/ or the path. */
import { join } from 'node:path';
import { root } from '../bootstrap.js';
import { buildSite } from './site.js';

export async function main(args: string[]): Promise<void> {
  await buildSite(new AbortController().signal, args);
  console.log(
    `The site is in ${join(root, 'docs', 'dist')}. The API serves it at /docs; any server of files can, too.`,
  );
}
